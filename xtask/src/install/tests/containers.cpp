#include <masu.hpp>
#include <cstdio>
#include <string>
#include <vector>
int main() {
    masu::heap heap;
    masu::memory_resource resource(heap);
    std::pmr::vector<std::pmr::string> words(100, std::pmr::string(50, 'w'), &resource);
    std::printf("%zu\n", heap.statistics().live_blocks);
}
