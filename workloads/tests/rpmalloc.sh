# title: rpmalloc's tests of alignment, resizing and threads (the crate rpmalloc-sys 0.2.3), its functions written as C's own
# runs: /tests
# left out: what asks for rpmalloc's exact sizes of blocks, its heaps and its reports
case $1 in
make)
    need cc gcc
    crates_of rpmalloc-sys@0.2.3 || exit
    source=$(echo crates/rpmalloc-sys-*/rpmalloc)
    mkdir -p include
    cat >include/rpmalloc.h <<'HEADER'
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define RPMALLOC_GROW_OR_FAIL 1
#define rpmalloc malloc
#define rpfree free
#define rprealloc realloc
#define rpmalloc_usable_size malloc_usable_size
#define rpmalloc_initialize() 0
#define rpmalloc_finalize() ((void)0)
#define rpmalloc_thread_initialize() ((void)0)
#define rpmalloc_thread_finalize(release) ((void)(release))
typedef struct { void (*error_callback)(const char *); size_t page_size, span_map_count; } rpmalloc_config_t;
#define rpmalloc_initialize_config(config) ((void)(config), 0)
static inline void *rpaligned_alloc(size_t alignment, size_t size) { return alignment ? memalign(alignment, size) : malloc(size); }
static inline void *rpaligned_realloc(void *old, size_t alignment, size_t size, size_t old_size, unsigned flags) {
    if (flags) return NULL;
    void *block = rpaligned_alloc(alignment, size);
    size_t usable = old_size ? old_size : malloc_usable_size(old);
    memcpy(block, old, usable < size ? usable : size), free(old);
    return block;
}
HEADER
    cat >tests.c <<'DRIVER'
#define NO_MAIN 1
#include "main.c"
int main(int count, char **arguments) {
    test_initialize();
#define RUN(name) if (!strcmp(arguments[1], #name)) return test_##name() != 0
    RUN(realloc); RUN(superalign); RUN(crossthread); RUN(threaded); RUN(threadspam);
    return 2;
}
DRIVER
    cc -w -O2 -pthread -D_GNU_SOURCE -Iinclude -I"$source/test" -I"$source/rpmalloc" tests.c "$source/test/thread.c" -o tests -lm
    ;;
run)
    for test in realloc superalign crossthread threaded threadspam; do
        if env LD_PRELOAD="$PRELOAD" timeout 900 ./tests $test >"$test.out" 2>&1; then echo "ok $test"; else echo "not ok $test"; fi
    done
    ;;
esac
