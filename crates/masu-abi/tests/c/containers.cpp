// Containers of C++17 whose memory is a heap: `masu.hpp`. The name of a group, given as argument, runs that one.
#include "served.h"

#include <masu.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Words = std::pmr::vector<std::pmr::string>;
using Numbers = std::vector<int, masu::allocator<int>>;

bool is_aligned(const void *block, std::size_t align)
{
    return reinterpret_cast<std::uintptr_t>(block) % align == 0;
}

GROUP(pmr_containers_live_in_the_heap)
{
    masu::heap heap;
    masu::memory_resource resource(heap);
    {
        Words words(&resource);
        std::pmr::map<std::pmr::string, int> lengths(&resource);
        for (int i = 0; i < 1000; i++) {
            words.emplace_back(std::string(i % 100 + 20, 'w'));
            lengths[words.back() + std::pmr::string(std::to_string(i))] = i;
        }
        CHECK(masu_heap_of(words.data()) == heap.get());
        CHECK(masu_heap_of(words[999].data()) == heap.get());
        CHECK(masu_heap_of(&lengths.begin()->first) == heap.get());
        CHECK(masu_heap_of(lengths.begin()->first.data()) == heap.get());
        CHECK(words[500].size() == 20 && lengths.size() == 1000);
        CHECK(heap.statistics().live_blocks > 3000);
    }
    CHECK(heap.statistics().live_blocks == 0);
}

GROUP(allocator_serves_containers)
{
    masu::heap heap;
    {
        Numbers numbers(heap);
        for (int i = 0; i < 100000; i++)
            numbers.push_back(i);
        CHECK(masu_heap_of(numbers.data()) == heap.get() && numbers[99999] == 99999);

        using Pair = std::pair<const int, std::string>;
        std::unordered_map<int, std::string, std::hash<int>, std::equal_to<int>, masu::allocator<Pair>> names(
            16, std::hash<int>(), std::equal_to<int>(), heap);
        for (int i = 0; i < 1000; i++)
            names.emplace(i, std::to_string(i));
        CHECK(names.at(777) == "777");
        CHECK(masu_heap_of(&names.at(777)) == heap.get());

        std::shared_ptr<int> shared = std::allocate_shared<int>(masu::allocator<int>(heap), 7);
        CHECK(masu_heap_of(shared.get()) == heap.get());
    }
    CHECK(heap.statistics().live_blocks == 0);
}

template <std::size_t Align>
struct alignas(Align) Wide {
    char bytes[Align];
};

template <std::size_t Align>
void check_alignment(masu::heap &heap)
{
    std::vector<Wide<Align>, masu::allocator<Wide<Align>>> wide(heap);
    masu::memory_resource resource(heap);
    for (int i = 0; i < 20; i++) {
        wide.resize(wide.size() + 1);
        CHECK(is_aligned(wide.data(), Align));
        void *block = resource.allocate(i * 24 + 1, Align);
        CHECK(is_aligned(block, Align) && masu_heap_of(block) == heap.get());
        resource.deallocate(block, i * 24 + 1, Align);
    }
}

GROUP(alignments_hold)
{
    masu::heap heap;
    check_alignment<1>(heap);
    check_alignment<16>(heap);
    check_alignment<32>(heap);
    check_alignment<64>(heap);
    check_alignment<4096>(heap);
    check_alignment<65536>(heap);
    masu::memory_resource resource(heap);
    void *empty = resource.allocate(0);
    CHECK(empty != nullptr);
    resource.deallocate(empty, 0);
    CHECK(heap.statistics().live_blocks == 0);
}

GROUP(equal_where_the_heap_is_the_same)
{
    masu::heap one, two;
    masu::memory_resource first(one), again(one), second(two);
    CHECK(first == again && first != second);
    CHECK(first != *std::pmr::new_delete_resource());
    masu::allocator<int> ints(one), others(two);
    masu::allocator<std::string> strings(ints);
    CHECK(ints == strings && ints != others);

    // Moved and swapped, blocks stay where they are; a copy that is assigned goes into the heap that is there.
    Numbers from(1000, 1, one), to(10, 2, two);
    const int *data = from.data();
    to = std::move(from);
    CHECK(to.data() == data && to.get_allocator() == ints);
    Numbers other(20, 3, two);
    std::swap(to, other);
    CHECK(other.data() == data && other.get_allocator() == ints && to.get_allocator() == others);
    to = other;
    CHECK(to.size() == 1000 && masu_heap_of(to.data()) == two.get());
}

struct Thrower {
    static int left;
    std::pmr::string text;
    explicit Thrower(std::pmr::memory_resource *resource) : text(100, 'x', resource)
    {
        if (left-- == 0)
            throw std::runtime_error("no more");
    }
};
int Thrower::left = 0;

template <typename Exception, typename Body>
bool throws(Body body)
{
    try {
        body();
    } catch (const Exception &) {
        return true;
    }
    return false;
}

// Kept from the compiler, which warns of what no address space holds.
volatile std::size_t impossible = PTRDIFF_MAX;

GROUP(exceptions_leave_the_heap_as_it_was)
{
    masu::heap heap;
    masu::memory_resource resource(heap);
    CHECK(throws<std::runtime_error>([&] {
        Thrower::left = 500;
        std::pmr::vector<Thrower> throwers(&resource);
        while (true)
            throwers.emplace_back(&resource);
    }));
    CHECK(heap.statistics().live_blocks == 0);
    CHECK(throws<std::bad_alloc>([&] { return resource.allocate(impossible); }));
    CHECK(throws<std::bad_alloc>([&] { return resource.allocate(impossible, 64); }));
    CHECK(throws<std::bad_alloc>([&] { return masu::allocator<int>(heap).allocate(impossible); }));
    // So many integers take 4 bytes more than there are addresses.
    CHECK(throws<std::bad_alloc>([&] { return masu::allocator<int>(heap).allocate(impossible / 2 + 2); }));
    Words words(3, "still usable after all that was refused", &resource);
    CHECK(words[2].size() == 39);
}

GROUP(all_blocks_end_with_the_heap)
{
    auto heap = std::make_unique<masu::heap>();
    std::size_t before = 0, full = 0;
    struct masu_statistics all;
    masu_statistics(&all, sizeof all);
    before = all.live_bytes;
    {
        masu::memory_resource resource(*heap);
        // The containers' own storage lies in the heap, so their destructors need not run.
        auto *words = new (resource.allocate(sizeof(Words), alignof(Words))) Words(&resource);
        for (int i = 0; i < 20000; i++)
            words->emplace_back(200, 'g');
        masu_statistics(&all, sizeof all);
        full = all.live_bytes;
    }
    CHECK(full > before + 4000000);
    heap->clear();
    CHECK(heap->statistics().live_blocks == 0);
    {
        masu::memory_resource resource(*heap);
        new (resource.allocate(sizeof(Words), alignof(Words))) Words(20000, "filled once more, and left behind", &resource);
    }
    heap.reset();
    masu_statistics(&all, sizeof all);
    CHECK(all.live_bytes < before + 100000);

    masu::heap moved = masu::heap(), taken;
    Numbers kept(100, 5, moved);
    taken = std::move(moved);
    CHECK(taken.get() == masu_heap_of(kept.data()) && moved.get() == nullptr);
}

GROUP(any_thread_uses_any_heap)
{
    masu::heap shared;
    masu::memory_resource resource(shared);
    std::vector<std::thread> threads;
    // Copies of a pmr container have the default resource, so each is made in its place.
    std::vector<Words> made;
    made.reserve(4);
    for (int one = 0; one < 4; one++)
        made.emplace_back(&resource);
    for (std::size_t one = 0; one < made.size(); one++) {
        threads.emplace_back([&, one] {
            for (int i = 0; i < 5000; i++)
                made[one].emplace_back(i % 300 + 1, static_cast<char>('a' + one));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    for (std::size_t one = 0; one < made.size(); one++) {
        CHECK(made[one].size() == 5000 && made[one][4999].size() == 4999 % 300 + 1);
        CHECK(made[one][299].back() == static_cast<char>('a' + one));
        CHECK(masu_heap_of(made[one].data()) == shared.get());
    }
    std::thread([&] { made.clear(); }).join();
    CHECK(shared.statistics().live_blocks == 0);
}

GROUP(delete_frees_a_heap_s_block)
{
    masu::heap heap;
    for (int i = 0; i < 1000; i++) {
        delete new (masu_heap_malloc(heap.get(), sizeof(int))) int(i);
        delete[] new (masu_heap_malloc(heap.get(), 9000)) char[9000];
    }
    CHECK(heap.statistics().live_blocks == 0);
}

} // namespace

RUN_GROUPS(300)
