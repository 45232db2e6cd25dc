// Containers, strings, exceptions through threads, aligned and array new, shared ownership,
// late destructors.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct alignas(64) Line {
    std::uint64_t words[8] = {};
};

struct Late {
    std::vector<std::string> kept;
    ~Late() {
        kept.emplace_back(100, 'z');
        std::size_t sum = 0;
        for (const auto &text : kept) sum += text.size();
        if (sum % 100 != 0) std::puts("a late destructor found its memory changed");
    }
};
thread_local Late late;

static std::uint64_t work(unsigned seed) {
    std::mt19937 numbers(seed);
    std::unordered_map<std::string, std::shared_ptr<std::vector<int>>> table;
    std::uint64_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        auto key = std::string("key ") + std::to_string(numbers() % 3000);
        auto &list = table[key];
        if (!list) list = std::make_shared<std::vector<int>>();
        list->push_back(i);
        if (list->size() > 9) table.erase(key);
        auto lines = std::make_unique<Line[]>(1 + numbers() % 5);
        if (reinterpret_cast<std::uintptr_t>(lines.get()) % alignof(Line) != 0) throw std::logic_error("alignment");
        sum += lines[0].words[3];
        if (i % 500 == 0) late.kept.emplace_back(100, 'k');
    }
    for (const auto &[key, list] : table) sum += key.size() * list->size();
    return sum;
}

int main(int, char **arguments) {
    const int rounds = std::atoi(arguments[1]);
    for (int round = 0; round < rounds; round++) {
        std::vector<std::future<std::uint64_t>> results;
        for (unsigned thread = 0; thread < 4; thread++)
            results.push_back(std::async(std::launch::async, work, thread + 1));
        for (auto &result : results) std::printf("%llu ", static_cast<unsigned long long>(result.get()));
        std::puts("");
    }
    int caught = 0;
    for (int i = 0; i < 200; i++) {
        std::exception_ptr error;
        std::thread([&] {
            try {
                throw std::runtime_error(std::string(static_cast<std::size_t>(i), 'e'));
            } catch (...) {
                error = std::current_exception();
            }
        }).join();
        try {
            std::rethrow_exception(error);
        } catch (const std::runtime_error &e) {
            caught += std::string(e.what()).size() == static_cast<std::size_t>(i);
        }
    }
    try {
        std::vector<char> impossible(PTRDIFF_MAX);
    } catch (const std::bad_alloc &) {
        std::puts("too much is refused");
    }
    std::ostringstream text;
    for (int i = 0; i < 30000; i++) text << i << ' ';
    std::printf("caught %d of 200, %zu characters\n", caught, text.str().size());
}
