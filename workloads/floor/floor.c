/* floor.c: what a malloc cannot go below. A block is the next bytes of one range, free does nothing, so that
 * what is left of a pattern's time is the pattern's own, the faults of fresh memory and a few instructions a
 * call. It is no malloc for use and no peer: the range is bounded, and a program that asks for more than it
 * holds is ended with a message, for its floor is not known.
 *
 * Each thread takes chunks of the range and bumps a pointer of its own in them. In front of each block stands
 * how many bytes it has, because realloc and malloc_usable_size must know. Fresh memory is zero, which is all
 * that calloc promises. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* All that is ever handed out in one process. */
#define RANGE ((size_t)2 << 30)
#define HUGE_PAGE ((size_t)2 << 20)
#define CHUNK ((size_t)64 << 10)
/* Blocks from here on are cut from the range itself, or the rest of too many chunks would be lost. */
#define LARGE (CHUNK / 4)
#define HEADER sizeof(size_t)
#define ALIGN ((size_t)16)
#define EXPORT __attribute__((visibility("default")))

#define UP(value, align) (((value) + (align)-1) & ~((align)-1))

/* Where the range begins; zero before the first request. */
static _Atomic uintptr_t range;
/* What was handed out of it, in bytes. */
static _Atomic size_t taken;

/* The rest of the thread's chunk. INVARIANT: `here` is HEADER below a multiple of ALIGN, or both are zero. */
static _Thread_local uintptr_t here __attribute__((tls_model("initial-exec")));
static _Thread_local uintptr_t end __attribute__((tls_model("initial-exec")));

static _Noreturn void refuse(const char *message, size_t length) {
    if (write(STDERR_FILENO, message, length) < 0) _exit(126);
    /* A signal, and not an exit code, which could be the program's own. */
    __builtin_trap();
}
#define REFUSE(message) refuse("floor: " message "\n", sizeof "floor: " message)

static uintptr_t begin(void) {
    void *mapped = mmap(NULL, RANGE + HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) REFUSE("the kernel has no room for its range");
    /* Faults of small pages would be most of the time, and they are no part of what cannot be saved. */
    madvise(mapped, RANGE + HUGE_PAGE, MADV_HUGEPAGE);
    uintptr_t start = UP((uintptr_t)mapped, HUGE_PAGE), before = 0;
    if (atomic_compare_exchange_strong(&range, &before, start)) return start;
    munmap(mapped, RANGE + HUGE_PAGE);
    return before;
}

/* The next `bytes` of the range, a multiple of ALIGN. */
static uintptr_t take(size_t bytes) {
    uintptr_t start = atomic_load(&range);
    if (start == 0) start = begin();
    size_t before = bytes > RANGE ? RANGE : atomic_fetch_add(&taken, bytes);
    if (before > RANGE - bytes || bytes > RANGE) REFUSE("more is asked for than its range of 2 GiB holds");
    return start + before;
}

static size_t *length_of(void *block) { return (size_t *)((uintptr_t)block - HEADER); }

static __attribute__((noinline)) void *allocate_slow(size_t align, size_t size) {
    /* No object can be so large, which a program may ask to hear. */
    if (size > PTRDIFF_MAX - align) {
        errno = ENOMEM;
        return NULL;
    }
    size_t length = UP(size + HEADER, ALIGN) - HEADER;
    if (size + align > LARGE) {
        size_t bytes = UP(length + HEADER + align, ALIGN);
        uintptr_t start = take(bytes);
        uintptr_t block = UP(start + ALIGN, align);
        /* Up to where the next large block may begin, so that it can grow from there. */
        *length_of((void *)block) = start + bytes - block;
        return (void *)block;
    }
    uintptr_t start = take(CHUNK);
    end = start + CHUNK;
    uintptr_t block = UP(start + ALIGN, align);
    here = block + length;
    *length_of((void *)block) = length;
    return (void *)block;
}

static inline void *allocate(size_t align, size_t size) {
    uintptr_t block = UP(here + HEADER, align);
    size_t length = UP(size + HEADER, ALIGN) - HEADER;
    /* Before the first request both are zero and nothing is left. */
    if (__builtin_expect(size > LARGE || block + length > end, 0)) return allocate_slow(align, size);
    here = block + length;
    *length_of((void *)block) = length;
    return (void *)block;
}

EXPORT void *malloc(size_t size) { return allocate(ALIGN, size); }

EXPORT void free(void *block) { (void)block; }

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return malloc(bytes);
}

/* Whether the block, which ends where something new would begin, could be made longer where it is. */
static int grew(void *block, size_t old, size_t size) {
    uintptr_t last = (uintptr_t)block + old;
    size_t more = UP(size - old, ALIGN);
    if (last == here && more <= end - here) {
        here += more;
    } else {
        size_t before = last - atomic_load(&range);
        if (before > RANGE || more > RANGE - before) return 0;
        if (!atomic_compare_exchange_strong(&taken, &before, before + more)) return 0;
    }
    *length_of(block) = old + more;
    return 1;
}

EXPORT void *realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
    size_t old = *length_of(block);
    if (size <= old || (size <= PTRDIFF_MAX && grew(block, old, size))) return block;
    void *moved = malloc(size);
    if (moved != NULL) memcpy(moved, block, old);
    return moved;
}

EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t size) {
    if (align == 0 || (align & (align - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    return allocate(align < ALIGN ? ALIGN : align, size);
}

EXPORT void *memalign(size_t align, size_t size) { return aligned_alloc(align, size); }

EXPORT int posix_memalign(void **block, size_t align, size_t size) {
    if (align < sizeof(void *) || (align & (align - 1)) != 0) return EINVAL;
    void *made = aligned_alloc(align, size);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

EXPORT void *valloc(size_t size) { return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), size); }

EXPORT void *pvalloc(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return aligned_alloc(page, UP(size, page));
}

EXPORT size_t malloc_usable_size(void *block) { return block == NULL ? 0 : *length_of(block); }
