#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
namespace shop {
struct Order { std::string customer; std::vector<double> items; };
template <class T> struct Store {
  std::map<int, T> all;
  __attribute__((noinline)) void keep(int key, T value) { all.emplace(key, std::move(value)); }
};
__attribute__((noinline)) Order parse(int n) {
  Order order{"", {}};
  order.items.reserve(1000);
  return order;
}
__attribute__((noinline)) void churn() {
  for (int n = 0; n < 200000; n++) { std::string line(1000, 'x'); asm volatile("" ::"r"(line.data()) : "memory"); }
}
__attribute__((noinline)) char *table() { char *block = new char[24 << 20]; block[5] = 1; return block; }
}
int main(int count, char **) {
  auto &store = *new shop::Store<shop::Order>;
  for (int n = 0; n < 5000; n++) store.keep(n, shop::parse(n));
  char *volatile table = shop::table();
  shop::churn();
  std::puts("ready");
  std::fflush(stdout);
  if (count > 1) { for (;;) shop::churn(); }
  return table == nullptr;
}
