/* A process's life under the library: before constructors, fork, many threads, loaded and unloaded
 * libraries, pointers of other mallocs. The name of a group, given as argument, runs that one. */
#include "work.h"

#include <errno.h>
#include <stdatomic.h>

/* --- Before everything: the executable's own pre-initializers run before any constructor. --- */

static char *earliest;

__attribute__((unused)) static void before_constructors(void)
{
    earliest = malloc(1000);
    memset(earliest, 'e', 1000);
    for (size_t size = 1; size < 100000; size = size * 2 + 1)
        free(calloc(1, size));
}

#ifndef WITHOUT_EARLIEST
__attribute__((section(".preinit_array"), used)) static void (*pre)(void) = before_constructors;
#endif

GROUP(first_malloc_before_constructors)
{
    CHECK(is_masu((void *)malloc));
    for (int i = 0; i < 1000; i++)
        CHECK(earliest[i] == 'e');
    earliest = realloc(earliest, 50000);
    CHECK(earliest && earliest[999] == 'e');
    free(earliest);
}

/* --- fork --- */

static void fork_and_work(unsigned seed)
{
    pid_t child = fork();
    if (child == 0) {
        work(seed, 500);
        run_thread(work_once, seed);
        malloc_trim(0);
        if (seed % 4 == 0)
            fork_and_work(seed + 1);
        /* Handlers and destructors run as well. */
        exit(0);
    }
    expect_success(child);
}

static void *fork_some(void *argument)
{
    for (unsigned i = 0; i < 30; i++)
        fork_and_work((unsigned)(uintptr_t)argument * 1000 + i);
    return NULL;
}

GROUP(fork_while_threads_allocate)
{
    pthread_t forkers[2];
    start_workers(3, work_until_stopped);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&forkers[i], NULL, fork_some, (void *)(i + 1)) == 0);
    fork_some((void *)9);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(forkers[i], NULL) == 0);
    join_workers(3);
}

static void *trim_until_stopped(void *unused)
{
    /* Never allocates: what it locks, it locks without a cache of its own. */
    while (!stop)
        malloc_trim(0);
    return unused;
}

GROUP(fork_beside_a_thread_that_trims)
{
    start_workers(1, trim_until_stopped);
    for (int round = 0; round < 300; round++)
        IN_CHILD(work(1, 500));
    join_workers(1);
}

/* The child goes on as a thread that meets the allocator for the first time, and another one was in
   the middle of it. */
static void *fork_without_allocating(void *done)
{
    for (int i = 0; i < 200; i++) {
        static void *volatile block;
        IN_CHILD(for (size_t size = 16; size < 40000; size += size / 8 + 16) CHECK((block = malloc(size))));
    }
    atomic_store((atomic_int *)done, 1);
    return NULL;
}

GROUP(fork_by_a_thread_that_never_allocated)
{
    static void *volatile blocks[4096];
    static atomic_int done;
    pthread_t forker;
    CHECK(pthread_create(&forker, NULL, fork_without_allocating, &done) == 0);
    while (!atomic_load(&done)) {
        for (size_t i = 0; i < 4096; i++)
            blocks[i] = malloc(16 + i * 7 % 2000);
        for (size_t i = 0; i < 4096; i++)
            free(blocks[i]);
    }
    CHECK(pthread_join(forker, NULL) == 0);
}

static void allocate_around_fork(void)
{
    work(7, 100);
    free(calloc(1, 100000));
}

/* The guest's constructor registered handlers too, before this program allocated at all. */
GROUP(fork_handlers_may_allocate)
{
    CHECK(pthread_atfork(allocate_around_fork, allocate_around_fork, allocate_around_fork) == 0);
    start_workers(3, work_until_stopped);
    for (unsigned i = 0; i < 100; i++)
        fork_and_work(4 * i + 1);
    join_workers(3);
}

GROUP(blocks_live_on_in_the_child)
{
    char *blocks[1000];
    for (int i = 0; i < 1000; i++) {
        blocks[i] = malloc((size_t)i * 50 + 1);
        memset(blocks[i], i, (size_t)i * 50 + 1);
    }
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 1000; i++) {
                CHECK(blocks[i][i * 50] == (char)i);
                blocks[i] = realloc(blocks[i], (size_t)i * 70 + 2);
                CHECK(blocks[i] && blocks[i][i * 50] == (char)i);
                free(blocks[i]);
            }
            _exit(0);
        }
        expect_success(child);
    }
    for (int i = 0; i < 1000; i++) {
        CHECK(blocks[i][i * 50] == (char)i);
        free(blocks[i]);
    }
}

pid_t _Fork(void) __attribute__((weak));

GROUP(other_forks)
{
    char *const none[] = {NULL};
    for (int i = 0; i < 50; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execve("/bin/true", none, none);
            _exit(1);
        }
        expect_success(child);
        work((unsigned)i, 100);
    }
    /* Without the handlers of fork; this process has one thread, so the child may allocate. */
    for (unsigned i = 0; _Fork && i < 50; i++) {
        pid_t child = _Fork();
        if (child == 0) {
            work(i, 500);
            _exit(0);
        }
        expect_success(child);
    }
}

GROUP(raw_fork_while_threads_allocate)
{
    start_workers(3, work_until_stopped);
    /* The child of _Fork may call little more than this. */
    for (unsigned i = 0; _Fork && i < 100; i++) {
        pid_t child = _Fork();
        if (child == 0)
            _exit(0);
        expect_success(child);
    }
    join_workers(3);
}

/* --- Threads --- */

static void *leave_a_block(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    free(malloc(random_size(&seed)));
    char *left = malloc(seed % 3000 + 1);
    *left = 'l';
    return left;
}

GROUP(threads_one_after_another)
{
    size_t count = getenv("MASU_SOAK") ? 1000000 : 5000, before = 0;
    for (size_t i = 0; i < count; i++) {
        char *left = run_thread(leave_a_block, i);
        CHECK(*left == 'l');
        free(left);
        if (i == count / 5)
            before = resident();
    }
    /* What a thread's end leaves behind would add up. */
    CHECK(resident() < before + 8 * MIB);
}

/* Others took all keys before the first allocation, by which a thread's end is heard of. */
GROUP(threads_where_no_key_is_left)
{
    pthread_key_t key;
    size_t keys = 0, before = 0;
    while (pthread_key_create(&key, NULL) == 0)
        keys++;
    CHECK(keys > 100);
    for (size_t i = 0; i < 2000; i++) {
        run_thread(work_once, i);
        if (i == 200)
            before = resident();
    }
    CHECK(resident() < before + 8 * MIB);
}

GROUP(threads_in_waves)
{
    for (int wave = 0; wave < 10; wave++) {
        pthread_t threads[200];
        void *left;
        for (size_t i = 0; i < 200; i++)
            CHECK(pthread_create(&threads[i], NULL, leave_a_block, (void *)(i * 77)) == 0);
        for (size_t i = 0; i < 200; i++) {
            CHECK(pthread_join(threads[i], &left) == 0);
            free(left);
        }
    }
}

/* The smallest stack that POSIX lets a thread have must do, and an allocation may happen near its
 * end. */
GROUP(threads_with_the_smallest_stack)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    for (size_t i = 0; i < 500; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, work_once, (void *)i) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void *work_and_leave_early(void *argument)
{
    work((unsigned)(uintptr_t)argument, 100);
    pthread_exit(malloc(10));
}

static void *work_until_cancelled(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (;;) {
        work(seed++, 50);
        pthread_testcancel();
    }
}

GROUP(threads_that_are_cancelled)
{
    for (size_t i = 0; i < 100; i++) {
        pthread_t leaves, cancelled;
        void *left;
        CHECK(pthread_create(&leaves, NULL, work_and_leave_early, (void *)i) == 0);
        CHECK(pthread_create(&cancelled, NULL, work_until_cancelled, (void *)i) == 0);
        CHECK(pthread_cancel(cancelled) == 0);
        CHECK(pthread_join(cancelled, &left) == 0 && left == PTHREAD_CANCELED);
        CHECK(pthread_join(leaves, &left) == 0);
        free(left);
    }
}

/* --- Libraries that come and go: tests/c/guest.c, named by the second argument. --- */

static const char *guest_path;

GROUP(libraries_that_allocated_are_unloaded)
{
    char *left[100];
    for (int i = 0; i < 100; i++) {
        void *guest = dlopen(guest_path, RTLD_NOW | RTLD_LOCAL);
        CHECK(guest);
        char *(*make)(size_t) = (char *(*)(size_t))dlsym(guest, "guest_make");
        void *(*run)(void *) = (void *(*)(void *))dlsym(guest, "guest_thread");
        CHECK(make && run);
        left[i] = make((size_t)i * 100 + 1);
        run_thread(run, 0);
        CHECK(dlclose(guest) == 0);
        CHECK(dlopen(guest_path, RTLD_NOW | RTLD_NOLOAD) == NULL);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(left[i][i * 100] == 'g');
        free(left[i]);
    }
}

GROUP(a_library_with_the_archive_stays)
{
    void *guest = dlopen(guest_path, RTLD_NOW | RTLD_LOCAL);
    CHECK(guest);
    run_thread((void *(*)(void *))dlsym(guest, "guest_thread"), 0);
    CHECK(dlclose(guest) == 0);
    IN_CHILD(work(1, 100));
    run_thread(work_once, (void *)1);
}

GROUP(the_library_stays)
{
    Dl_info info;
    CHECK(dladdr((void *)malloc, &info));
    void *masu = dlopen(info.dli_fname, RTLD_NOW);
    CHECK(masu);
    for (int i = 0; i < 10; i++)
        dlclose(masu);
    work(1, 1000);
}

/* --- Pointers that another malloc handed out --- */

static void *from_guest(char *(*make)(size_t), size_t size)
{
    char *block = make(size);
    CHECK(block && block[size - 1] == 'g');
    return block;
}

/* RTLD_DEEPBIND is taken out: the guest has our malloc, and its own search path. */
GROUP(a_deeply_bound_library_has_our_malloc)
{
    void *guest = dlopen(guest_path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK(guest);
    void *(*malloc_of)(void) = (void *(*)(void))dlsym(guest, "guest_malloc");
    CHECK(malloc_of && is_masu(malloc_of()));
    CHECK(dlclose(guest) == 0);
    CHECK(dlopen("no-such-library.so", RTLD_NOW | RTLD_DEEPBIND) == NULL);
    CHECK(strstr(dlerror(), "no-such-library.so"));
    CHECK(dlopen(NULL, RTLD_NOW) != NULL);
}

/* The guest's name alone, in a program that knows the folder. */
GROUP(a_library_is_found_along_the_path_of_who_opens_it)
{
    CHECK(!strchr(guest_path, '/'));
    CHECK(dlopen(guest_path, RTLD_NOW | RTLD_DEEPBIND));
}

/* With MASU_DEEPBIND=1. */
GROUP(foreign_pointers_go_to_their_malloc)
{
    /* RTLD_DEEPBIND: the guest finds glibc's malloc before ours. */
    void *guest = dlopen(guest_path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK(guest);
    char *(*make)(size_t) = (char *(*)(size_t))dlsym(guest, "guest_make");
    void *(*malloc_of)(void) = (void *(*)(void))dlsym(guest, "guest_malloc");
    CHECK(make && malloc_of);
    CHECK(!is_masu(malloc_of()));
    static const size_t sizes[] = {1, 24, 100, 5000, 200000, 3 << 20};
    for (int round = 0; round < 100; round++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t size = sizes[s];
            errno = 4711;
            free(from_guest(make, size));
            CHECK(errno == 4711);
            void *block = from_guest(make, size);
            CHECK(malloc_usable_size(block) >= size);
            char *grown = realloc(block, size * 2);
            CHECK(grown && grown[size - 1] == 'g');
            free(grown);
            CHECK(realloc(from_guest(make, size), 0) == NULL);
        }
    }
}

GROUP(a_pointer_of_nobody_ends_the_program)
{
    static char nobody[64] __attribute__((aligned(64)));
    free(nobody + 16);
}

int main(int count, char **arguments)
{
    guest_path = count > 2 ? arguments[2] : NULL;
    return run_group(count, arguments, getenv("MASU_SOAK") ? 0 : 300);
}
