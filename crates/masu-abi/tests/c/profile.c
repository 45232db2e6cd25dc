/* What tests/profile.rs asks of a program: blocks of every kind while a profile is taken, and who is
 * forked or has more rights than its user. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(truth) \
    do { \
        if (!(truth)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #truth); \
            abort(); \
        } \
    } while (0)

static unsigned random_below(unsigned *state, unsigned bound) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % bound;
}

/* Blocks of all sizes, grown, shrunk, aligned, cleared, looked at, and freed. */
static void *exercise(void *seed) {
    static const size_t sizes[] = {1, 24, 100, 700, 1500, 9000, 40000, 70000, 300000};
    unsigned state = (unsigned)(uintptr_t)seed;
    unsigned char *blocks[200] = {0};
    size_t lengths[200] = {0};
    for (int n = 0; n < 6000; n++) {
        unsigned at = random_below(&state, 200);
        size_t size = sizes[random_below(&state, 9)] + random_below(&state, 50);
        for (size_t i = 0; i < lengths[at]; i += 97)
            CHECK(blocks[at][i] == (unsigned char)at);
        if (blocks[at] && random_below(&state, 2)) {
            size_t kept = size < lengths[at] ? size : lengths[at];
            blocks[at] = realloc(blocks[at], size);
            CHECK(blocks[at]);
            for (size_t i = 0; i < kept; i += 97)
                CHECK(blocks[at][i] == (unsigned char)at);
        } else {
            free(blocks[at]);
            void *block = NULL;
            switch (random_below(&state, 3)) {
            case 0:
                block = malloc(size);
                break;
            case 1:
                block = calloc(1, size);
                for (size_t i = 0; i < size; i++)
                    CHECK(((unsigned char *)block)[i] == 0);
                break;
            default:
                CHECK(posix_memalign(&block, 512, size) == 0 && (uintptr_t)block % 512 == 0);
            }
            blocks[at] = block;
        }
        CHECK(blocks[at] && (uintptr_t)blocks[at] % 16 == 0);
        CHECK(malloc_usable_size(blocks[at]) >= size);
        memset(blocks[at], (int)at, malloc_usable_size(blocks[at]));
        lengths[at] = size;
    }
    for (int at = 0; at < 200; at++)
        free(blocks[at]);
    return NULL;
}

static void *of_another_thread(void *block) {
    free(block);
    return malloc(5 << 20);
}

static volatile int has_ended;

static void *until_the_end(void *nothing) {
    while (!has_ended)
        free(malloc(100));
    return nothing;
}

/* Children of a program whose other threads are in the midst of samples. */
static void fork_beside_samples(void) {
    pthread_t threads[3];
    for (int n = 0; n < 3; n++)
        CHECK(pthread_create(&threads[n], NULL, until_the_end, NULL) == 0);
    for (int n = 0; n < 100; n++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            /* One that waits for what nobody gives is ended. */
            alarm(60);
            for (int block = 0; block < 50; block++)
                free(malloc(100));
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    has_ended = 1;
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], NULL);
}

/* A function whose unwind table says that its frame ends far above any stack. */
void *mistold(void);
__asm__(".text\n.globl mistold\n.type mistold, %function\nmistold:\n.cfi_startproc\n"
#ifdef __aarch64__
        "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 0x4000000\n.cfi_offset 30, -8\n"
        "mov x0, #100\nbl malloc\nldp x29, x30, [sp], #16\n"
#else
        "subq $8, %rsp\n.cfi_def_cfa_offset 0x4000000\n"
        "movl $100, %edi\ncall malloc@PLT\naddq $8, %rsp\n"
#endif
        "ret\n.cfi_endproc\n.size mistold, .-mistold\n");

__attribute__((noinline)) static void *kept_by_main(void) {
    void *block = malloc(3 << 20);
    memset(block, 1, 3 << 20);
    return block;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    void *volatile kept = NULL;
    if (strcmp(what, "exercise") == 0) {
        pthread_t threads[3];
        for (long n = 0; n < 3; n++)
            CHECK(pthread_create(&threads[n], NULL, exercise, (void *)(n + 1)) == 0);
        exercise((void *)77);
        for (int n = 0; n < 3; n++)
            pthread_join(threads[n], NULL);
    } else if (strcmp(what, "kept") == 0) {
        kept = kept_by_main();
    } else if (strcmp(what, "threads") == 0) {
        pthread_t thread;
        void *block = malloc(7 << 20);
        CHECK(pthread_create(&thread, NULL, of_another_thread, block) == 0);
        void *other = NULL;
        pthread_join(thread, &other);
        kept = other;
    } else if (strcmp(what, "fork_beside_samples") == 0) {
        fork_beside_samples();
    } else if (strcmp(what, "mistold") == 0) {
        for (int n = 0; n < 10; n++)
            free(mistold());
    } else if (strcmp(what, "fork") == 0) {
        kept = kept_by_main();
        pid_t child = fork();
        if (child == 0) {
            free(kept);
            exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        printf("%d %d\n", (int)getpid(), (int)child);
    }
    return kept == (void *)1;
}
