// The operators of C++ and what surrounds them: handlers, exceptions, destructors that run late.
// The name of a group, given as argument, runs that one.
#include "served.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace {

// No address space holds this; kept from the compiler, which knows better than to compile it.
volatile std::size_t impossible = PTRDIFF_MAX;

using std::align_val_t;
using std::nothrow;

// Compilers may drop an allocation that nobody looks at.
void *volatile looked_at;

bool aligned_to(const void *block, std::size_t align)
{
    return (reinterpret_cast<std::uintptr_t>(block) & (align - 1)) == 0;
}

template <typename... Arguments>
void *address_of(void *(*function)(Arguments...))
{
    return reinterpret_cast<void *>(function);
}

template <typename... Arguments>
void *address_of(void (*function)(Arguments...))
{
    return reinterpret_cast<void *>(function);
}

GROUP(all_operators)
{
    using Size = std::size_t;
    CHECK(is_masu(address_of<Size>(::operator new)));
    CHECK(is_masu(address_of<Size, align_val_t>(::operator new[])));
    CHECK(is_masu(address_of<Size, const std::nothrow_t &>(::operator new)));
    CHECK(is_masu(address_of<void *, Size>(::operator delete)));
    CHECK(is_masu(address_of<void *, Size, align_val_t>(::operator delete[])));

    for (Size size = 0; size < 70000; size = size * 5 / 4 + 1) {
        ::operator delete(::operator new(size));
        ::operator delete[](::operator new[](size));
        ::operator delete(::operator new(size), size);
        ::operator delete[](::operator new[](size), size);
        ::operator delete(::operator new(size, nothrow), nothrow);
        ::operator delete[](::operator new[](size, nothrow), nothrow);
        for (Size align = 1; align <= (1u << 20); align *= 4) {
            align_val_t a{align};
            void *one = ::operator new(size, a), *two = ::operator new[](size, a);
            void *three = ::operator new(size, a, nothrow);
            void *four = ::operator new[](size, a, nothrow);
            for (void *block : {one, two, three, four}) {
                CHECK(block && aligned_to(block, align) && aligned_to(block, 16));
                memset(block, 1, size);
            }
            ::operator delete(one, a);
            ::operator delete[](two, size, a);
            ::operator delete(three, size, a);
            ::operator delete[](four, a, nothrow);
            ::operator delete(::operator new(size, a), a, nothrow);
            ::operator delete[](::operator new[](size, a), a);
        }
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr, Size{8});
    ::operator delete(nullptr, align_val_t{64});
    // Two empty objects are two objects.
    std::unique_ptr<char[]> one{new char[0]}, two{new char[0]};
    CHECK(one.get() != two.get());
}

GROUP(sized_delete_does_not_believe_the_size)
{
    for (int round = 0; round < 1000; round++) {
        std::vector<void *> blocks;
        for (int i = 0; i < 50; i++) {
            blocks.push_back(::operator new(200));
            memset(blocks.back(), i, 200);
        }
        for (int i = 0; i < 50; i++)
            CHECK(static_cast<char *>(blocks[i])[199] == i);
        for (int i = 0; i < 50; i++) {
            if (i % 2)
                ::operator delete(blocks[i], 9);
            else
                ::operator delete(blocks[i], 90000, align_val_t{4096});
        }
    }
}

template <typename Call>
bool throws_bad_alloc(Call call)
{
    try {
        call();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

GROUP(new_throws_or_gives_null)
{
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(impossible); }));
    CHECK(throws_bad_alloc([] { looked_at = ::operator new[](impossible); }));
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(impossible, align_val_t{64}); }));
    CHECK(throws_bad_alloc([] { looked_at = ::operator new[](impossible, align_val_t{8}); }));
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(SIZE_MAX); }));
    CHECK(throws_bad_alloc([] { std::vector<char> much(impossible); }));
    CHECK(throws_bad_alloc([] { std::string().reserve(impossible / 4); }));
    // Not a power of two.
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(10, align_val_t{24}); }));
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(10, align_val_t{0}); }));
    CHECK(::operator new(10, align_val_t{24}, nothrow) == nullptr);
    CHECK(::operator new(impossible, nothrow) == nullptr);
    CHECK(::operator new[](impossible, nothrow) == nullptr);
    CHECK(::operator new(impossible, align_val_t{64}, nothrow) == nullptr);
    CHECK(::operator new[](impossible, align_val_t{64}, nothrow) == nullptr);
    CHECK(new (nothrow) char[impossible] == nullptr);
}

int handler_calls;

void give_up_at_the_third_call()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

GROUP(handler_runs_until_it_is_gone)
{
    auto fails_after_three = [](auto allocate) {
        handler_calls = 0;
        std::set_new_handler(give_up_at_the_third_call);
        allocate();
        CHECK(handler_calls == 3 && std::get_new_handler() == nullptr);
    };
    fails_after_three([] {
        CHECK(throws_bad_alloc([] { looked_at = ::operator new(impossible); }));
    });
    fails_after_three([] {
        CHECK(throws_bad_alloc([] { looked_at = ::operator new[](impossible, align_val_t{64}); }));
    });
    fails_after_three([] { CHECK(::operator new(impossible, nothrow) == nullptr); });
    fails_after_three([] {
        CHECK(::operator new(impossible, align_val_t{64}, nothrow) == nullptr);
    });
}

rlimit limit;

void raise_the_limit()
{
    handler_calls++;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

GROUP(handler_that_finds_memory)
{
    std::size_t much = std::size_t{3} << 30;
    getrlimit(RLIMIT_AS, &limit);
    for (int form = 0; form < 3; form++) {
        handler_calls = 0;
        std::set_new_handler(raise_the_limit);
        limit.rlim_cur = std::size_t{2} << 30;
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        void *block = form == 0   ? ::operator new(much)
                      : form == 1 ? ::operator new(much, nothrow)
                                  : ::operator new(much, align_val_t{64});
        CHECK(block && handler_calls == 1);
        static_cast<char *>(block)[much - 1] = 1;
        ::operator delete(block);
    }
    std::set_new_handler(nullptr);
}

struct Refusal {
    std::string why;
};

void refuse()
{
    throw Refusal{"the handler itself throws, and allocates for it"};
}

void refuse_with_bad_alloc()
{
    throw std::bad_alloc();
}

GROUP(handler_that_throws)
{
    std::set_new_handler(refuse);
    for (int i = 0; i < 1000; i++) {
        bool caught = false;
        try {
            looked_at = ::operator new(impossible);
        } catch (const Refusal &refusal) {
            caught = refusal.why.size() > 20;
        }
        CHECK(caught);
        CHECK(::operator new(impossible, nothrow) == nullptr);
        CHECK(::operator new[](impossible, align_val_t{256}, nothrow) == nullptr);
    }
    std::set_new_handler(refuse_with_bad_alloc);
    CHECK(throws_bad_alloc([] { looked_at = ::operator new(impossible); }));
    CHECK(::operator new(impossible, nothrow) == nullptr);
    std::set_new_handler(nullptr);
    // No exception is left half caught.
    CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
}

// Registers that a callee must keep, and a local in each frame, have to survive the unwinding.
std::size_t deep(int depth, std::size_t a, std::size_t b, std::size_t c)
{
    std::vector<std::string> held(3, std::string(40, 'x'));
    if (depth == 0)
        looked_at = new char[impossible];
    try {
        return deep(depth - 1, a + 1, b + a, c ^ b) + held.size();
    } catch (const std::bad_alloc &) {
        CHECK(held[2].size() == 40);
        if (depth % 7 == 0)
            throw std::runtime_error(held[1]);
        throw;
    }
}

GROUP(exceptions_through_many_frames)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([] {
            for (int i = 0; i < 200; i++) {
                bool caught = false;
                try {
                    deep(100, 1, 2, 3);
                } catch (const std::runtime_error &error) {
                    caught = std::string(error.what()) == std::string(40, 'x');
                }
                CHECK(caught);
            }
        });
    }
    for (auto &thread : threads)
        thread.join();
}

std::atomic<int> late_runs;

// Destroyed at the thread's end, after the thread's cache may be gone.
struct Late {
    std::map<int, std::string> held;
    ~Late()
    {
        std::list<std::string> fresh(100, std::string(50, 'y'));
        held.clear();
        void *large = malloc(1 << 20);
        CHECK(large);
        free(large);
        late_runs++;
    }
};

thread_local Late late_one, late_two;

void at_key_end(void *block)
{
    free(block);
    free(malloc(333));
    late_runs++;
}

GROUP(threads_that_free_late)
{
    pthread_key_t key;
    CHECK(pthread_key_create(&key, at_key_end) == 0);
    for (int round = 0; round < 50; round++) {
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; t++) {
            threads.emplace_back([key] {
                for (int i = 0; i < 100; i++) {
                    late_one.held[i] = std::string(i, 'a');
                    late_two.held[i] = std::string(100, 'b');
                }
                pthread_setspecific(key, malloc(1000));
            });
        }
        for (auto &thread : threads)
            thread.join();
    }
    CHECK(late_runs == 50 * 8 * 3);
}

// Lives until after main: freed by static destructors and by handlers of exit, in between which
// more is allocated.
std::vector<std::string> *held_until_exit;

struct Static {
    std::map<std::string, std::string> held;
    Static() { held["constructed"] = "before main"; }
    ~Static()
    {
        held["destroyed"] = "after main";
        CHECK(held.size() >= 2);
        free(calloc(100, 100));
    }
} a_static, another_static;

void at_exit()
{
    delete held_until_exit;
    a_static.held["at exit"] = std::string(1000, 'z');
}

GROUP(destructors_after_main)
{
    atexit(at_exit);
    held_until_exit = new std::vector<std::string>(1000, std::string(100, 'q'));
    another_static.held["main"] = std::string(10000, 'm');
    std::thread([] { another_static.held["thread"] = std::string(10000, 't'); }).join();
}

} // namespace

RUN_GROUPS(300)
