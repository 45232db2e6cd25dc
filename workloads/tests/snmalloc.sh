# title: snmalloc's stress tests (the crate snmalloc-sys 0.7.6), its functions written as C's own
# runs: /programs/
# left out: what asks for snmalloc's own functions, classes of size and answers where C leaves them open: 40 of 45 files
case $1 in
make)
    need c++ g++
    crates_of snmalloc-sys@0.7.6 || exit
    source=$(echo crates/snmalloc-sys-*/upstream/src)
    rm -rf include programs && mkdir -p include/test programs
    cp "$source"/test/{opt,setup,usage,xoroshiro,measuretime}.h include/test/
    cat >include/test/snmalloc_testlib.h <<'HEADER'
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#define SNMALLOC_CHECK(is) ((is) ? (void)0 : abort())
#define UNUSED(...) (void)(__VA_ARGS__)
namespace snmalloc {
enum class ZeroMem { NoZero, YesZero };
template <ZeroMem zero = ZeroMem::NoZero> void *alloc(size_t size) { return zero == ZeroMem::YesZero ? ::calloc(1, size) : ::malloc(size); }
inline void dealloc(void *p) { ::free(p); }
inline void dealloc(void *p, size_t) { ::free(p); }
inline void debug_check_empty() {}
inline void debug_in_use(size_t) {}
inline size_t max_small_sizeclass_bits() { return 16; }
inline uint64_t pal_tick() { return __builtin_ia32_rdtsc(); }
inline void pal_pause() { __builtin_ia32_pause(); }
namespace bits { inline size_t one_at_bit(size_t bit) { return size_t(1) << bit; } }
namespace libc { using ::malloc, ::free, ::malloc_usable_size; }
struct Scoped {
    Scoped *operator->() { return this; }
    void *alloc(size_t size) { return ::malloc(size); }
    void dealloc(void *p) { ::free(p); }
};
inline Scoped get_scoped_allocator() { return {}; }
}
HEADER
    for test in func/first_operation perf/contention perf/large_alloc perf/lotsofthreads perf/singlethread; do
        c++ -w -std=c++20 -O2 -pthread -Iinclude "$source/test/$test"/*.cc -o "programs/${test#*/}" || exit
    done
    ;;
run)
    for program in programs/*; do
        name=${program##*/}
        if env LD_PRELOAD="$PRELOAD" timeout 900 "$program" --smoke >"$name.out" 2>&1; then echo "ok $name"; else echo "not ok $name"; fi
    done
    ;;
esac
