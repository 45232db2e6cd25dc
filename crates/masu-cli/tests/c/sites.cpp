// sites.cpp: two functions ask for memory, one twice as often as the other, by way of the standard library.
#include <string>
#include <vector>

struct Reader {
    template <typename T> [[gnu::noinline]] std::vector<T> copy_names(const char *name);
};

template <typename T> std::vector<T> Reader::copy_names(const char *name) {
    std::vector<T> names;
    for (int i = 0; i < 4000000; i++) names.assign(1, T(name));
    return names;
}

[[gnu::noinline]] static int *make_records() {
    int *volatile record = new int[8];
    for (int i = 1; i < 2000000; i++) {
        delete[] record;
        record = new int[8];
    }
    return record;
}

int main() {
    auto names = Reader().copy_names<std::string>("a name that is some thirty bytes");
    delete[] make_records();
    return names.size() == 1 ? 0 : 1;
}
