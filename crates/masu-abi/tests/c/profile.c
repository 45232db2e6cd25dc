/* What tests/profile.rs asks of a program: blocks of every kind while a profile is taken, and who is
 * forked or has more rights than its user. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
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

/* 20 MiB of each size, all but the last of them less than a class has. */
static void churn(void) {
    static const size_t sizes[] = {17, 40, 100, 577, 1000, 3000};
    static void *blocks[61];
    size_t count = 0, bytes = 0, requests = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t sum = 0; sum < 20 << 20; sum += sizes[s], count++) {
            /* One that is freed at once, then one that lives while sixty others come. */
            void **at = count % 2 ? &blocks[count % 61] : &blocks[0];
            free(*at);
            *at = count % 3 == 0 ? calloc(1, sizes[s]) : malloc(sizes[s]);
            CHECK(*at);
            bytes += sizes[s];
            if (count % 7 == 0) {
                /* Into another class and back: two requests more. */
                *at = realloc(realloc(*at, 3 * sizes[s] + 100), sizes[s]);
                CHECK(*at);
                bytes += 3 * sizes[s] + 100 + sizes[s];
                requests += 2;
            }
        }
    }
    for (size_t at = 0; at < 61; at++)
        free(blocks[at]);
    /* No block was lost on any of these ways. */
    CHECK(mallinfo2().uordblks < 256 << 10);
    printf("%zu %zu\n", count + requests, bytes);
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

static volatile int is_asking, may_answer;

static int slow_visit(struct dl_phdr_info *info, size_t size, void *nothing) {
    (void)info, (void)size, (void)nothing;
    is_asking = 1;
    while (!may_answer)
        usleep(1000);
    return 1;
}

static void *ask(void *nothing) {
    free(malloc(10));
    dl_iterate_phdr(slow_visit, nothing);
    return nothing;
}

__attribute__((noinline)) static void *kept_by_child(void) {
    void *block = malloc(2 << 20);
    memset(block, 1, 2 << 20);
    return block;
}

/* A child whose parent has a thread that asks the dynamic linker, as one does that throws an exception:
 * the lock stays held in the child. */
static void fork_beside_asker(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
    while (!is_asking)
        usleep(1000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* One that waits for what nobody gives is ended. */
        alarm(60);
        for (int block = 0; block < 50; block++)
            free(malloc(100));
        void *kept = kept_by_child();
        exit(kept == NULL);
    }
    may_answer = 1;
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pthread_join(thread, NULL);
    printf("%d %d\n", (int)getpid(), (int)child);
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
    } else if (strcmp(what, "churn") == 0) {
        churn();
    } else if (strcmp(what, "threads") == 0) {
        pthread_t thread;
        void *block = malloc(7 << 20);
        CHECK(pthread_create(&thread, NULL, of_another_thread, block) == 0);
        void *other = NULL;
        pthread_join(thread, &other);
        kept = other;
    } else if (strcmp(what, "fork_beside_samples") == 0) {
        fork_beside_samples();
    } else if (strcmp(what, "fork_beside_asker") == 0) {
        fork_beside_asker();
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
