/* What masu.h says of statistics, and the statistics page through a process's life. The argument names a
   group. */
#include <errno.h>
#include <fcntl.h>
#include <masu.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "served.h"

static int numbers(void)
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
    return 0;
}

static int text(void)
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
    return 0;
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

static void child_has_its_own(int (*forks)(void))
{
    int status;
    pid_t child = forks();
    CHECK(child >= 0);
    if (child == 0) {
        allocate(NULL);
        CHECK(page() >= 0 && word(4) == (unsigned long)getpid());
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(word(4) == (unsigned long)getpid());
}

static int page_through_life(void)
{
    pthread_t threads[4];
    int i, descriptor;
    free(malloc(1));
    descriptor = page();
    CHECK(descriptor >= 960);
    CHECK(word(4) == (unsigned long)getpid() && word(3) % 2 == 0);
    /* Nobody else can write to it or make it shorter, nor can this program by its descriptor. */
    CHECK(ftruncate(descriptor, 0) == -1 && write(descriptor, "x", 1) == -1);
    CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    /* Nor is it a program, on kernels that know MFD_NOEXEC_SEAL. */
    i = memfd_create("probe", 8);
    CHECK(i == -1 || (close(i) == 0 && fchmod(descriptor, 0777) == -1));
    child_has_its_own(fork);
    for (i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
    for (i = 0; i < 20; i++)
        child_has_its_own(fork);
    for (i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    /* A program that closes everything, and one that uses the number for something else. */
    for (i = 3; i < 1024; i++)
        close(i);
    CHECK(page() == -1);
    allocate(NULL);
    CHECK(dup2(1, descriptor) == descriptor);
    if (fork() == 0) {
        CHECK(fcntl(descriptor, F_GETFD) >= 0);
        CHECK(page() >= 0 && word(4) == (unsigned long)getpid());
        _exit(0);
    }
    CHECK(wait(&i) > 0 && WIFEXITED(i) && WEXITSTATUS(i) == 0);
    return 0;
}

/* All memory in one go, faster than time passes: at least half of it stands on the page. */
static int burst(void)
{
    static void *blocks[200000];
    int i;
    for (i = 0; i < 200000; i++)
        CHECK((blocks[i] = malloc(100)) != NULL);
    CHECK(word(16) >= 200000UL * 100 / 2);
    return blocks[7] == NULL;
}

static int no_page(void)
{
    allocate(NULL);
    CHECK(page() == -1);
    return 0;
}

int main(int count, char **arguments)
{
    const char *group = count == 2 ? arguments[1] : "";
    served_by_masu();
    if (strcmp(group, "numbers") == 0)
        return numbers();
    if (strcmp(group, "text") == 0)
        return text();
    if (strcmp(group, "page") == 0)
        return page_through_life();
    if (strcmp(group, "burst") == 0)
        return burst();
    if (strcmp(group, "no_page") == 0)
        return no_page();
    fprintf(stderr, "no such group\n");
    return 2;
}
