/* Machines that give less than usual: sandboxes that refuse system calls, no mappings left, memory
 * that is counted when it is promised. The name of a group, given as argument, runs that one. */
#include "work.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* --- Sandboxes --- */

/* Answers `call` with `answer` from here on; where its third argument is `third`, or always if that is
 * -1. */
static void filter(unsigned call, unsigned third, unsigned answer)
{
    struct sock_filter always = BPF_STMT(BPF_JMP | BPF_JA, 0);
    struct sock_filter if_third = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, third, 0, 1);
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        third == -1u ? always : if_third,
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, 2, &program) != 0)
        _exit(77);
}

static unsigned answer_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned answer;
    } answers[] = {
        {"EPERM", SECCOMP_RET_ERRNO | EPERM},   {"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS},
        {"EINVAL", SECCOMP_RET_ERRNO | EINVAL}, {"EACCES", SECCOMP_RET_ERRNO | EACCES},
        {"nothing", SECCOMP_RET_ERRNO | 0},     {"kill", SECCOMP_RET_KILL_PROCESS},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (name && strcmp(name, answers[i].name) == 0)
            return answers[i].answer;
    fprintf(stderr, "no answer of that name\n");
    exit(2);
}

/* Blocks of all lengths, filled, freed, and asked for again as zeros. */
static void zeros_after_use(void)
{
    static const size_t sizes[] = {100, 5000, 40000, 300000, 5 * MIB, 40 * MIB};
    for (int round = 0; round < 2; round++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t size = sizes[s], count = 60 * MIB / size;
            unsigned char **blocks = malloc(count * sizeof *blocks);
            CHECK(blocks);
            for (size_t i = 0; i < count; i++) {
                blocks[i] = calloc(1, size);
                CHECK(blocks[i]);
                for (size_t at = 0; at < size; at += size < 4096 ? 1 : 512)
                    CHECK(blocks[i][at] == 0);
                memset(blocks[i], 0xa5, size);
            }
            for (size_t i = 0; i < count; i++)
                free(blocks[i]);
            free(blocks);
            malloc_trim(0);
        }
    }
}

static const char *answer_name;

GROUP(madvise_is_refused)
{
    filter(SYS_madvise, -1u, answer_of(answer_name));
    zeros_after_use();
    start_workers(4, work_once);
    work(2, 20000);
    join_workers(4);
}

/* Ranges that go back together, from the second thread on: each by itself where that is refused. */
GROUP(process_madvise_is_refused)
{
    filter(SYS_process_madvise, -1u, answer_of(answer_name));
    start_workers(4, work_once);
    zeros_after_use();
    work(2, 20000);
    join_workers(4);
}

/* Only what makes memory writable: the dynamic linker and the C library protect theirs. */
GROUP(mprotect_is_refused)
{
    run_thread(work_once, 1);
    filter(SYS_mprotect, PROT_READ | PROT_WRITE, answer_of(answer_name));
    zeros_after_use();
    work(2, 20000);
    /* Several arenas, whose bytes in the class map lie side by side. */
    enum { COUNT = 6 };
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(700 * MIB);
        CHECK(blocks[i]);
        blocks[i][0] = blocks[i][700 * MIB - 1] = 1;
        work((unsigned)i, 1000);
    }
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    work(3, 20000);
}

/* No memory at all beyond what there is: what is refused is said, and nothing breaks. */
GROUP(mapping_is_refused)
{
    filter(SYS_mprotect, PROT_READ | PROT_WRITE, answer_of(answer_name));
    filter(SYS_mmap, PROT_READ | PROT_WRITE, answer_of(answer_name));
    filter(SYS_mmap, PROT_NONE, answer_of(answer_name));
    size_t count = 0;
    while (malloc(100000))
        CHECK(++count < 10000);
    CHECK(errno == ENOMEM);
    CHECK(malloc(64 * MIB) == NULL && errno == ENOMEM);
}

/* --- No mappings left --- */

/* Maps OS pages that never merge until there are no more; returns how many. */
static size_t use_up_mappings(char **first)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0, length = 200000 * page;
    char *start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED);
    while (count < 100000 && mprotect(start + 2 * count * page, page, PROT_READ) == 0)
        count++;
    *first = start;
    return count;
}

GROUP(mappings_are_used_up)
{
    enum { COUNT = 2000 };
    static char *blocks[COUNT];
    char *first;
    work(1, 1000);
    size_t used = use_up_mappings(&first);
    CHECK(used > 10000 && errno == ENOMEM);
    /* What is there grows on: a heap of small and of large blocks, made and freed. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            size_t size = i % 100 == 0 ? MIB : (size_t)i % 4 == 0 ? 50000 : 500;
            blocks[i] = malloc(size);
            CHECK(blocks[i]);
            memset(blocks[i], i, size);
        }
        for (int i = 0; i < COUNT; i++) {
            CHECK(blocks[i][100] == (char)i);
            free(blocks[i]);
        }
        malloc_trim(0);
        work((unsigned)round, 5000);
    }
    /* A range of addresses of its own may be refused, and then that is said. */
    errno = 0;
    char *large = malloc(3000 * MIB);
    CHECK(large || errno == ENOMEM);
    if (large)
        large[0] = large[3000 * MIB - 1] = 1;
    free(large);
    work(7, 5000);
    munmap(first, 200000 * (size_t)sysconf(_SC_PAGESIZE));
    large = malloc(3000 * MIB);
    CHECK(large);
    free(large);
    work(8, 5000);
}

/* --- Few addresses: ulimit -v --- */

GROUP(few_addresses)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    work(1, 2000);
    /* The program itself, its libraries and stack. */
    size_t free_bytes = limit.rlim_cur - 8 * MIB;
    if (free_bytes > 256 * MIB)
        free_bytes = 256 * MIB;
    for (int round = 0; round < 3; round++) {
        static const size_t sizes[] = {100, 4000, 60000};
        struct link *links;
        size_t size = sizes[round], count = allocate_links(&links, size, free_bytes);
        fprintf(stderr, "%zu KiB of %zu KiB\n", count * size / 1024, free_bytes / 1024);
        CHECK(count * size > free_bytes / 2);
        free_links(links);
        malloc_trim(0);
        work((unsigned)round, 2000);
    }
}

/* --- Memory that is counted when it is promised: vm.overcommit_memory=2 --- */

static long of_meminfo(const char *name)
{
    char line[200];
    long kilobytes = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kilobytes = atol(line + strlen(name) + 1);
    fclose(file);
    CHECK(kilobytes >= 0);
    return kilobytes;
}

GROUP(promises_are_counted)
{
    long limit = of_meminfo("CommitLimit"), before = of_meminfo("Committed_AS");
    work(1, 1000);
    long small = of_meminfo("Committed_AS") - before;
    fprintf(stderr, "a small program's promise: %ld KiB\n", small);
    CHECK(small < 8 * 1024);
    for (int round = 0; round < 3; round++) {
        struct link *links;
        size_t count = allocate_links(&links, 20000, SIZE_MAX);
        CHECK(errno == ENOMEM);
        long got = (long)(count * 20000 / 1024);
        fprintf(stderr, "%ld KiB of %ld KiB\n", got, limit - before);
        CHECK(got > (limit - before) / 10 * 7);
        CHECK(malloc((size_t)limit * 1024) == NULL && errno == ENOMEM);
        free_links(links);
        malloc_trim(0);
        work(2, 5000);
    }
}

int main(int count, char **arguments)
{
    answer_name = count > 2 ? arguments[2] : NULL;
    return run_group(count, arguments, 300);
}
