/* What tests/profile.rs asks of a program: blocks of every kind while a profile is taken, and who is
 * forked or has more rights than its user. */
#include "work.h"

#include <errno.h>
#include <link.h>

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

static void allocate_some(void) {
    for (int block = 0; block < 50; block++)
        free(malloc(100));
}

static void *allocate_until_stopped(void *nothing) {
    while (!stop)
        free(malloc(100));
    return nothing;
}

/* Children of a program whose other threads are in the midst of samples. */
static void fork_beside_samples(void) {
    start_workers(3, allocate_until_stopped);
    for (int n = 0; n < 100; n++)
        IN_CHILD(allocate_some());
    join_workers(3);
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
    start_workers(1, ask);
    while (!is_asking)
        usleep(1000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* One that waits for what nobody gives is ended. */
        alarm(60);
        allocate_some();
        void *kept = kept_by_child();
        exit(kept == NULL);
    }
    may_answer = 1;
    expect_success(child);
    join_workers(1);
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
        start_workers(3, exercise);
        exercise((void *)77);
        join_workers(3);
    } else if (strcmp(what, "kept") == 0) {
        kept = kept_by_main();
    } else if (strcmp(what, "churn") == 0) {
        churn();
    } else if (strcmp(what, "threads") == 0) {
        kept = run_thread(of_another_thread, (uintptr_t)malloc(7 << 20));
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
        expect_success(child);
        printf("%d %d\n", (int)getpid(), (int)child);
    }
    return kept == (void *)1;
}
