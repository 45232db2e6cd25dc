/* masu.h: the interface of libmasu.so and libmasu.a for C and C++.
 *
 * A program does not need this header: once it links masu or preloads it, its malloc and free are
 * masu's. The header declares what the standard headers lack: the rest of the malloc family in one
 * place, and masu's own functions, which all begin with `masu_`.
 *
 * It compiles as C89 and later and as C++98 and later. Functions may be called from any thread and
 * before main; none may be called from a signal handler unless it says so.
 *
 * Errors are numbers of <errno.h> as results, 0 for success, as in POSIX threads; `errno` is left
 * alone. Sizes are in bytes.
 *
 * COUPLING: every function here begins with MASU_API, and tests/exports.rs compares these declarations
 * with the exports of libmasu.so. To add one: declare it in the section of its subject, and define
 * it in the file of the same name in crates/masu-abi/src/masu/.
 */
#ifndef MASU_H
#define MASU_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The version of this header; masu_version() has the library's. */
#define MASU_VERSION_MAJOR 0
#define MASU_VERSION_MINOR 1
#define MASU_VERSION_PATCH 0
#define MASU_VERSION "0.1.0"

/* Comparable in #if: 10000 * major + 100 * minor + patch. */
#define MASU_VERSION_NUMBER \
    (10000 * MASU_VERSION_MAJOR + 100 * MASU_VERSION_MINOR + MASU_VERSION_PATCH)

/* Attributes, for compilers that have them. */
#if defined(__GNUC__)
#define MASU_ATTRIBUTE(list) __attribute__(list)
#else
#define MASU_ATTRIBUTE(list)
#endif

/* No function throws. The C library's functions must be declared exactly as in its headers. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define MASU_NOTHROW noexcept
#elif defined(__cplusplus)
#define MASU_NOTHROW throw()
#else
#define MASU_NOTHROW MASU_ATTRIBUTE((__nothrow__))
#endif
#if defined(__GLIBC__)
#define MASU_LIBC_NOTHROW __THROW
#define MASU_LIBC_HAS_MALLINFO2 __GLIBC_PREREQ(2, 33)
#else
#define MASU_LIBC_NOTHROW
#define MASU_LIBC_HAS_MALLINFO2 0
#endif

#if defined(__GNUC__)
#define MASU_API extern MASU_ATTRIBUTE((__visibility__("default")))
#else
#define MASU_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The malloc family ------------------------------------------------------------------------
 *
 * The names of C23, POSIX and glibc, whatever standard the program is compiled for. A block is
 * aligned to 16 bytes at least, of any size; a size of 0 gives a block of its own; realloc to 0
 * frees, as in glibc. Where they return null, errno is ENOMEM (or EINVAL for a wrong alignment).
 */

MASU_API void *malloc(size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(1), __warn_unused_result__));
MASU_API void *calloc(size_t count, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(1, 2), __warn_unused_result__));
MASU_API void *realloc(void *block, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__alloc_size__(2), __warn_unused_result__));
MASU_API void *reallocarray(void *block, size_t count, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__alloc_size__(2, 3), __warn_unused_result__));
MASU_API void free(void *block) MASU_LIBC_NOTHROW;

/* As free. Only the hardened build checks the numbers, because programs pass wrong ones. */
MASU_API void free_sized(void *block, size_t size) MASU_LIBC_NOTHROW;
MASU_API void free_aligned_sized(void *block, size_t align, size_t size) MASU_LIBC_NOTHROW;

/* The size need not be a multiple of the alignment. */
MASU_API void *aligned_alloc(size_t align, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(2), __warn_unused_result__));
MASU_API int posix_memalign(void **result, size_t align, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__warn_unused_result__));
MASU_API void *memalign(size_t align, size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(2), __warn_unused_result__));
MASU_API void *valloc(size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(1), __warn_unused_result__));
MASU_API void *pvalloc(size_t size) MASU_LIBC_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __warn_unused_result__));

/* The usable bytes, constant while the block lives; 0 for null. */
MASU_API size_t malloc_usable_size(void *block) MASU_LIBC_NOTHROW;

/* Returns free memory to the system but for about `pad` bytes; 1 where any was, else 0. */
MASU_API int malloc_trim(size_t pad) MASU_LIBC_NOTHROW;

/* 1 for each parameter that glibc documents, 0 for others: docs/options.md gives the effect of each. */
MASU_API int mallopt(int parameter, int value) MASU_LIBC_NOTHROW;

/* Numbers in glibc's form, text on standard error, XML on a stream (`options` is 0). */
#if !defined(__GLIBC__)
struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
MASU_API struct mallinfo mallinfo(void) MASU_LIBC_NOTHROW;
#endif
#if !MASU_LIBC_HAS_MALLINFO2
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
MASU_API struct mallinfo2 mallinfo2(void) MASU_LIBC_NOTHROW;
#endif
MASU_API void malloc_stats(void) MASU_LIBC_NOTHROW;
MASU_API int malloc_info(int options, FILE *stream) MASU_LIBC_NOTHROW;

/* ---- The library ------------------------------------------------------------------------------ */

/* The library's version, such as "0.1.0"; never null, never freed. */
MASU_API const char *masu_version(void) MASU_NOTHROW;

/* Returns free memory to the system but for about `keep` bytes, this thread's cache first; 1 where
 * any was, else 0. Takes locks, one at a time. */
MASU_API int masu_purge(size_t keep) MASU_NOTHROW;

/* ---- Options ----------------------------------------------------------------------------------
 *
 * `name` is that of docs/options.md, such as "retain". A value set here applies from now on and
 * overrides the environment. Any option may be changed at any time.
 */

/* The name of an option, from 0 on; null behind the last. */
MASU_API const char *masu_option_name(size_t place) MASU_NOTHROW;

/* The value of an option that nobody has set and whose default follows the program. Setting it
 * restores the default. */
#define MASU_UNSET ((size_t)-1)

/* Writes the current value to `*value`. 0, or ENOENT where there is no such option. */
MASU_API int masu_option_get(const char *name, size_t *value) MASU_NOTHROW;

/* Sets the option. 0, or ENOENT where there is no such option, or EINVAL where it does not accept
 * the value. */
MASU_API int masu_option_set(const char *name, size_t value) MASU_NOTHROW;

/* masu_option_set with a value in the environment's form: "64M". */
MASU_API int masu_option_parse(const char *name, const char *value) MASU_NOTHROW;

/* ---- Statistics --------------------------------------------------------------------------------
 *
 * Numbers in the order and with the names of JSON: docs/observing.md. Nothing here
 * allocates. While other threads allocate, the numbers of different parts are of slightly different
 * moments; otherwise they are exact. Locks are taken one at a time.
 *
 * Structures may grow at the end. The caller passes the size of its own; a number that the library
 * does not know is 0.
 */

/* The whole process. */
struct masu_statistics {
    /* Bytes of live blocks, each counted with its whole usable size. */
    size_t live_bytes;
    /* Bytes of large blocks (over 64 KiB, or over 32 KiB and grown or zeroed) among them. */
    size_t large_bytes;
    /* Live large blocks. */
    size_t large_blocks;
    /* Bytes of free blocks in thread caches and in the transfer cache. */
    size_t cached_bytes;
    /* The number of those blocks. */
    size_t cached_blocks;
    /* Bytes of them in thread caches. */
    size_t thread_cached_bytes;
    /* Bytes free inside pages, caches and free runs that may be resident. */
    size_t free_bytes;
    /* Bytes of retained free runs among them. */
    size_t kept_bytes;
    /* Bytes readable and writable, which the kernel may have to back. The allocator's part of RSS is
     * at most this. */
    size_t committed_bytes;
    /* Bytes of addresses reserved. */
    size_t reserved_bytes;
    /* Bytes of runs that hold the allocator's own memory: thread caches and their arrays. */
    size_t metadata_bytes;
    /* Shards whose pages hold live blocks. */
    size_t shards;
    /* Thread caches in use, without those that a fork left behind. */
    size_t threads;
    /* Thread caches whose thread has ended, kept for the next one. */
    size_t idle_caches;
    /* Calls that a thread cache could not serve: an empty or a full stack, or the free of a large
     * block that was not parked. Large blocks made are not among them. */
    size_t slow_calls;
    /* Large blocks ever handed out, except parked ones that their thread took again. */
    size_t large_made;
    /* Batches of blocks that thread caches took from the transfer cache or from pages. */
    size_t refills;
    /* Blocks in them. */
    size_t refilled_blocks;
    /* Batches of blocks that thread caches flushed to the transfer cache or to pages. */
    size_t flushes;
    /* Blocks in them. */
    size_t flushed_blocks;
    /* Remote frees of the smallest classes: blocks freed by a thread of another lane and sent to
     * theirs. */
    size_t lane_blocks;
    /* Blocks that a thread returned to pages of another shard than its own. */
    size_t shard_blocks;
    /* Blocks ever flushed to the transfer cache. */
    size_t transfer_in_blocks;
    /* Blocks ever refilled from it. */
    size_t transfer_out_blocks;
    /* Purges. */
    size_t purges;
    /* Bytes purged. */
    size_t purged_bytes;
    /* Purges that the kernel refused. */
    size_t refused_purges;
    /* Bytes for which the kernel was ever asked for huge pages. How many it gave is in
     * AnonHugePages of /proc/self/smaps. */
    size_t huge_page_bytes;
    /* First-class heaps. */
    size_t heaps;
    /* Bytes of their live blocks that are not large ones; no class below counts them. */
    size_t heap_bytes;
    /* Guarded blocks. */
    size_t guarded_blocks;
    /* Bytes of them, as requested. */
    size_t guarded_bytes;
    /* Bytes of those among them that C's functions requested; no class below counts them. */
    size_t guarded_apart_bytes;
    /* Blocks ever guarded. */
    size_t guarded_made;
    /* Blocks not guarded because every slot held a live one. */
    size_t guarded_skipped;
};

/* A size class. */
struct masu_class_statistics {
    /* Bytes of a block. */
    size_t size;
    /* Live blocks. */
    size_t live_blocks;
    /* Free blocks in thread caches. */
    size_t thread_cached_blocks;
    /* Free blocks in the transfer cache. */
    size_t transfer_blocks;
    /* Free blocks in pages. */
    size_t free_blocks;
    /* Pages. */
    size_t pages;
    /* Bytes of a page. */
    size_t page_bytes;
    /* Bytes of all pages behind the last block. */
    size_t tail_bytes;
    /* Blocks ever taken from pages. */
    size_t taken_blocks;
    /* Blocks ever returned to pages. */
    size_t returned_blocks;
    /* Blocks ever flushed to the transfer cache. */
    size_t transfer_in_blocks;
    /* Blocks ever refilled from it. */
    size_t transfer_out_blocks;
    /* Bytes of the live blocks that the program may not use: the canaries of the hardened build, else 0. */
    size_t canary_bytes;
};

/* A thread cache, which may serve several threads one after the other. */
struct masu_thread_statistics {
    /* 0 where the thread has ended, 1 where it runs, 2 where a fork left it behind with its blocks
     * for good. */
    size_t state;
    /* The thread's number (TID), known while the statistics page is on; else 0. */
    size_t thread;
    /* The shard that it takes blocks from. */
    size_t shard;
    /* Free blocks held. */
    size_t cached_blocks;
    /* Bytes of them. */
    size_t cached_bytes;
    /* Bytes that the stacks may hold together at their current limits. */
    size_t limit_bytes;
    /* Bytes of the large block that is parked. */
    size_t parked_bytes;
    /* As in struct masu_statistics, of this cache; the following too. */
    size_t slow_calls;
    /* Refills. */
    size_t refills;
    /* Blocks in them. */
    size_t refilled_blocks;
    /* Flushes. */
    size_t flushes;
    /* Blocks in them. */
    size_t flushed_blocks;
    /* Blocks of other lanes sent to them. */
    size_t lane_blocks;
    /* Blocks returned to pages of another shard. */
    size_t shard_blocks;
};

/* Writes the numbers of the process, `size` being sizeof *statistics; returns how many bytes of them
 * the library knows. */
MASU_API size_t masu_statistics(struct masu_statistics *statistics, size_t size) MASU_NOTHROW;

/* Write a row for each of the first `count` size classes (smallest first) or thread caches (youngest
 * first), `row_size` being sizeof *rows; return how many there are. */
MASU_API size_t masu_statistics_classes(struct masu_class_statistics *rows, size_t row_size,
                                        size_t count) MASU_NOTHROW;
MASU_API size_t masu_statistics_threads(struct masu_thread_statistics *rows, size_t row_size,
                                        size_t count) MASU_NOTHROW;

/* Write everything as text for people, or as one JSON object on a line, as snprintf does: at most
 * `size` bytes, the last one 0; they return the length of the whole text, which was cut if that is not
 * less than `size`. It changes from call to call. */
MASU_API size_t masu_statistics_text(char *buffer, size_t size) MASU_NOTHROW;
MASU_API size_t masu_statistics_json(char *buffer, size_t size) MASU_NOTHROW;

/* The same into a file. 0, or the error of write(2). */
MASU_API int masu_statistics_text_to(int descriptor) MASU_NOTHROW;
MASU_API int masu_statistics_json_to(int descriptor) MASU_NOTHROW;

/* ---- Heaps --------------------------------------------------------------------------------------
 *
 * A heap has memory of its own: its blocks share no OS page with others, and destroying it frees
 * all of them at once, live ones too. Any thread may use any heap; docs/heaps.md.
 *
 * free() and operator delete free a block of a heap, from any thread; realloc() keeps it in its
 * heap; malloc_usable_size() and the alignment are as for other blocks. A heap must not be null;
 * neither it nor a block of it may be used once it is destroyed.
 */

typedef struct masu_heap masu_heap_t;

/* A new heap; null and ENOMEM in errno where there is no memory for it. It owns no memory yet. */
MASU_API masu_heap_t *masu_heap_new(void) MASU_NOTHROW MASU_ATTRIBUTE((__warn_unused_result__));

/* Frees every block of a heap, and the heap; null is ignored. */
MASU_API void masu_heap_destroy(masu_heap_t *heap) MASU_NOTHROW;

/* Frees every block of a heap, which stays usable. */
MASU_API void masu_heap_clear(masu_heap_t *heap) MASU_NOTHROW;

/* As malloc, calloc, aligned_alloc: null and errno where there is no memory. */
MASU_API void *masu_heap_malloc(masu_heap_t *heap, size_t size) MASU_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(2), __warn_unused_result__));
MASU_API void *masu_heap_calloc(masu_heap_t *heap, size_t count, size_t size) MASU_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(2, 3), __warn_unused_result__));
MASU_API void *masu_heap_aligned_alloc(masu_heap_t *heap, size_t align, size_t size) MASU_NOTHROW
    MASU_ATTRIBUTE((__malloc__, __alloc_size__(3), __warn_unused_result__));

/* As realloc; the block belongs to `heap` afterwards, whatever it belonged to before. A size of 0
 * gives a smallest block. */
MASU_API void *masu_heap_realloc(masu_heap_t *heap, void *block, size_t size) MASU_NOTHROW
    MASU_ATTRIBUTE((__alloc_size__(3), __warn_unused_result__));

/* The heap that a live block belongs to; null where it belongs to none. */
MASU_API masu_heap_t *masu_heap_of(const void *block) MASU_NOTHROW;

/* A heap's numbers; as for the structures above, further ones may follow. */
struct masu_heap_statistics {
    /* Bytes of live blocks, each counted with its whole usable size. */
    size_t live_bytes;
    /* Live blocks. */
    size_t live_blocks;
    /* Bytes of large blocks (over 64 KiB, or over 32 KiB and grown or zeroed) among them. */
    size_t large_bytes;
    /* Large blocks among them. */
    size_t large_blocks;
    /* Bytes of free blocks in thread caches. */
    size_t cached_bytes;
    /* Bytes of the heap's pages and large blocks, all of which destroying it frees. */
    size_t committed_bytes;
};

/* Writes a heap's numbers, `size` being sizeof *statistics; returns how many bytes of them the
 * library knows. */
MASU_API size_t masu_heap_statistics(masu_heap_t *heap, struct masu_heap_statistics *statistics,
                                     size_t size) MASU_NOTHROW;

/* ---- Heap profile -----------------------------------------------------------------------------
 *
 * A sample of the allocations with their call stacks: docs/observing.md. It costs nothing while none
 * is taken. MASU_PROFILE=PREFIX in the environment takes one from the start to the end.
 */

/* Starts a profile, empty at first: one byte in `interval` on average is sampled, with its
 * block; 0 stands for the option profile_interval, 512 KiB unless set. All threads' allocations are
 * counted from here on. 0, or EBUSY where one is being taken, ENOMEM, or EPERM in programs with
 * more rights than their user. */
MASU_API int masu_profile_start(size_t interval) MASU_NOTHROW;

/* Ends the profile, which can be written until the next one starts. */
MASU_API void masu_profile_stop(void) MASU_NOTHROW;

/* Writes the current profile into a new file that only its owner may read, for
 * `masu heap show` and pprof. 0, or ENODATA where none was started, or EPERM, or the error of
 * making the file: EEXIST where there is one. Takes a lock that sampled allocations wait for. */
MASU_API int masu_profile_write(const char *path) MASU_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
