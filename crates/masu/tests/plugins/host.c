/* Loads a plug-in, uses it from several threads, unloads it, and goes on: what the plug-in left behind
 * (threads that end later, handlers of fork) must find its code. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            const char *error = dlerror();                                            \
            fprintf(stderr, "%d: not true: %s: %s\n", __LINE__, #condition, error ? error : ""); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static size_t (*work)(size_t);
static pthread_barrier_t unloaded;

static void *thread(void *argument)
{
    CHECK(work((size_t)argument) == (size_t)argument);
    /* Ends only after the plug-in was closed: masu's handler for a thread's end is called then. */
    pthread_barrier_wait(&unloaded);
    pthread_barrier_wait(&unloaded);
    return NULL;
}

int main(int count, char **arguments)
{
    alarm(60);
    for (int i = 2; i < count; i++)
        if (!dlopen(arguments[i], RTLD_NOW))
            fprintf(stderr, "%s\n", dlerror());
    for (int round = 0; round < 3; round++) {
        pthread_t threads[4];
        void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(plugin);
        work = (size_t(*)(size_t))dlsym(plugin, "plugin_work");
        CHECK(work);
        pthread_barrier_init(&unloaded, NULL, 5);
        for (size_t i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, thread, (void *)(1000 * (i + 1))) == 0);
        pthread_barrier_wait(&unloaded);
        CHECK(work(500) == 500);
        CHECK(dlclose(plugin) == 0);
        pthread_barrier_wait(&unloaded);
        for (size_t i = 0; i < 4; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        pid_t child = fork();
        if (child == 0)
            exit(0);
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    puts("done");
    return 0;
}
