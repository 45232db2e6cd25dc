# title: jemalloc's integration tests of C's and C++'s own functions (Debian's source of jemalloc)
# runs: /programs/
# differs: aligned_alloc/test_alignment_errors: passes with masu alone, which refuses an alignment that is no power of two; glibc 2.36 rounds it up
# left out: the other 15 files, which ask for functions that jemalloc alone has
case $1 in
make)
    need cc gcc
    need c++ g++
    source_of jemalloc
    rm -rf include programs && mkdir -p include/test programs
    # What these five take from jemalloc's own header, for any malloc: `mallctl` knows the largest size, and purges nothing.
    cat >include/test/jemalloc_test.h <<'HEADER'
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN
#define LG_SIZEOF_PTR 3
#define SIZE_T_MAX SIZE_MAX
#define BUFERROR_BUF 64
#define TEST_MALLOC_SIZE malloc_usable_size
#define TEST_BEGIN(name) static void name(void) { printf("begin " #name "\n");
#define TEST_END }
#define test_fail(...) (printf("failed: " __VA_ARGS__), putchar('\n'))
#define expect_true(is, ...) ((is) ? 0 : test_fail(__VA_ARGS__))
#define expect_false(is, ...) expect_true(!(is), __VA_ARGS__)
#define expect_d_eq(a, b, ...) expect_true((a) == (b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) expect_true((a) != (b), __VA_ARGS__)
#define expect_ptr_null(p, ...) expect_true((p) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(p, ...) expect_true((p) != NULL, __VA_ARGS__)
#define get_errno() errno
#define set_errno(to) (errno = (to))
#define buferror(error, text, size) snprintf(text, size, "%s", strerror(error))
static inline int mallctl(const char *name, void *old, size_t *size, void *new_, size_t length) {
    (void)name, (void)new_, (void)length;
    if (old) memset(old, 0, *size), *(char *)old = 1;
    return 0;
}
static inline int mallctlnametomib(const char *name, size_t *mib, size_t *length) { return (void)name, (void)mib, (void)length, 0; }
static inline int mallctlbymib(size_t *mib, size_t count, void *old, size_t *size, void *new_, size_t length) {
    (void)mib, (void)count, (void)size, (void)new_, (void)length;
    return *(size_t *)old = PTRDIFF_MAX, 0;
}
static int test_all(void (**tests)(void), size_t count) {
    for (size_t i = 0; i < count; i++) tests[i](), puts("end");
    return 0;
}
#define test(...) ({ void (*tests[])(void) = {__VA_ARGS__}; test_all(tests, sizeof tests / sizeof *tests); })
HEADER
    for name in aligned_alloc malloc overflow posix_memalign; do
        cc -w -O1 -fno-builtin -Iinclude "source/test/integration/$name.c" -o "programs/$name" || exit
    done
    c++ -w -O1 -fno-builtin -fpermissive -Iinclude source/test/integration/cpp/basic.cpp -o programs/cpp-basic
    ;;
run)
    for program in programs/*; do
        env LD_PRELOAD="$PRELOAD" timeout 300 "$program" | awk -v program="${program##*/}" '
            /^begin / { name = program "/" $2; failed = 0 }
            /^failed/ { failed = 1 }
            /^end/ { print (failed ? "not ok " : "ok ") name; name = "" }
            END { if (name != "") print "not ok " name }'
    done
    ;;
esac
