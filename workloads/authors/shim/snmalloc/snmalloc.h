// snmalloc's own tests use its functions: here they are the C library's, so that a preloaded malloc is tested.
#pragma once

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>

#define SNMALLOC_CHECK(condition) static_cast<void>(condition)
#define SNMALLOC_FAST_PATH inline

namespace snmalloc {

enum ZeroMem { NoZero, YesZero };

inline void *alloc(size_t size) { return malloc(size); }

template <ZeroMem zero> void *alloc(size_t size) {
    return zero == YesZero ? calloc(1, size) : malloc(size);
}

inline void dealloc(void *block) { free(block); }
inline void dealloc(void *block, size_t) { free(block); }
inline void debug_check_empty() {}

inline uint64_t pal_tick() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}
inline void pal_pause() {}

namespace bits {
inline size_t one_at_bit(size_t shift) { return size_t(1) << shift; }
}

namespace libc {
using ::free;
using ::malloc;
using ::malloc_usable_size;
}

}
