/* What masu.h says of statistics, and the statistics page through a process's life. The argument names a
   group. */
#include <errno.h>
#include <fcntl.h>
#include <masu.h>

#include "work.h"

GROUP(numbers_agree_with_what_the_program_does)
{
    struct masu_statistics before, now;
    struct masu_class_statistics classes[100];
    struct masu_thread_statistics threads[4];
    char tail[sizeof before + 8];
    char *block;
    size_t i, count, live = 0;
    CHECK(masu_statistics(&before, sizeof before) == sizeof before);
    block = malloc(1000);
    CHECK(masu_statistics(&now, sizeof now) == sizeof now);
    CHECK(now.live_bytes == before.live_bytes + malloc_usable_size(block));
    count = masu_statistics_classes(classes, sizeof classes[0], 100);
    CHECK(count == 80 && classes[0].size == 16 && classes[79].size == 65536);
    for (i = 0; i < count; i++)
        live += classes[i].live_blocks * classes[i].size;
    CHECK(live + now.large_bytes == now.live_bytes);
    CHECK(masu_statistics_threads(threads, sizeof threads[0], 4) == 1);
    CHECK(threads[0].state == 1 && threads[0].refills == now.refills);
    /* What is asked for beyond what there is, and less. */
    memset(tail, 1, sizeof tail);
    CHECK(masu_statistics((struct masu_statistics *)(void *)tail, sizeof tail) == sizeof now);
    CHECK(tail[sizeof now] == 0 && tail[sizeof tail - 1] == 0);
    memset(tail, 1, sizeof tail);
    CHECK(masu_statistics((struct masu_statistics *)(void *)tail, 8) == sizeof now && tail[8] == 1);
    CHECK(masu_statistics_classes(NULL, 0, 0) == 80);
    free(block);
}

GROUP(text_is_cut_where_there_is_no_room_and_errors_are_results)
{
    static char whole[1 << 16], part[100];
    size_t length = masu_statistics_json(whole, sizeof whole);
    int ends[2];
    ssize_t got;
    CHECK(length > 500 && length < sizeof whole && strlen(whole) == length);
    CHECK(strncmp(whole, "{\"schema\":\"masu-statistics\",\"version\":1,", 39) == 0);
    CHECK(whole[length - 1] == '\n' && whole[length - 2] == '}');
    memset(part, 'x', sizeof part);
    CHECK(masu_statistics_json(part, 50) > 500 && strlen(part) == 49 && part[50] == 'x');
    CHECK(memcmp(part, whole, 49) == 0);
    CHECK(masu_statistics_text(part, 1) > 500 && part[0] == 0);
    CHECK(masu_statistics_text(NULL, 0) > 500);
    CHECK(pipe(ends) == 0);
    CHECK(masu_statistics_json_to(ends[1]) == 0);
    got = read(ends[0], whole, sizeof whole);
    CHECK(got > 500 && whole[got - 1] == '\n');
    errno = 0;
    CHECK(masu_statistics_text_to(-1) == EBADF && errno == 0);
}

/* The descriptor of this process's page, or -1. */
static int page(void)
{
    char path[64], link[64];
    int descriptor;
    for (descriptor = 1023; descriptor >= 0; descriptor--) {
        ssize_t length;
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
        length = readlink(path, link, sizeof link - 1);
        if (length > 0 && strncmp(link, "/memfd:masu-statistics", 22) == 0)
            return descriptor;
    }
    return -1;
}

/* A word of this process's page. */
static unsigned long word(int place)
{
    unsigned long value = 0;
    CHECK(pread(page(), &value, sizeof value, (off_t)(8 * place)) == sizeof value);
    return value;
}

static void *allocate(void *unused)
{
    int i;
    (void)unused;
    for (i = 0; i < 100000; i++)
        free(malloc(100000));
    return NULL;
}

static void child_has_its_own(void)
{
    IN_CHILD(allocate(NULL); CHECK(page() >= 0 && word(4) == (unsigned long)getpid()));
    CHECK(word(4) == (unsigned long)getpid());
}

GROUP(page_through_life)
{
    free(malloc(1));
    int descriptor = page();
    CHECK(descriptor >= 960);
    CHECK(word(4) == (unsigned long)getpid() && word(3) % 2 == 0);
    /* Nobody else can write to it or make it shorter, nor can this program by its descriptor. */
    CHECK(ftruncate(descriptor, 0) == -1 && write(descriptor, "x", 1) == -1);
    CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    /* Nor is it a program, on kernels that know MFD_NOEXEC_SEAL. */
    int probe = memfd_create("probe", 8);
    CHECK(probe == -1 || (close(probe) == 0 && fchmod(descriptor, 0777) == -1));
    child_has_its_own();
    start_workers(4, allocate);
    for (int i = 0; i < 20; i++)
        child_has_its_own();
    join_workers(4);
    /* A program that closes everything, and one that uses the number for something else. */
    for (int i = 3; i < 1024; i++)
        close(i);
    CHECK(page() == -1);
    allocate(NULL);
    CHECK(dup2(1, descriptor) == descriptor);
    IN_CHILD(CHECK(fcntl(descriptor, F_GETFD) >= 0 && page() >= 0 && word(4) == (unsigned long)getpid()));
}

/* All memory in one go, faster than time passes: at least half of it stands on the page. */
GROUP(burst)
{
    static void *blocks[200000];
    int i;
    for (i = 0; i < 200000; i++)
        CHECK((blocks[i] = malloc(100)) != NULL);
    CHECK(word(16) >= 200000UL * 100 / 2);
}

GROUP(no_page)
{
    allocate(NULL);
    CHECK(page() == -1);
}

RUN_GROUPS(300)
