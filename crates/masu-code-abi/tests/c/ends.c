/* A library of code arenas that a program opens, and closes while threads have blocks of thread-local variables of loaded
 * code; and calls of it at a thread's very end. Prints what it saw. */
#include <dlfcn.h>
#include <masu_code.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NAMED(name) __typeof__(name) *call_##name = (__typeof__(name) *)dlsym(library, #name)

static void *library;
static masu_code *arena;
static const char *path;
static pthread_barrier_t barrier;
static pthread_key_t key;

static void at_end(void *none) {
    NAMED(masu_code_load);
    NAMED(masu_code_error);
    (void)none;
    if (call_masu_code_load(arena, "bad", "no object", 9) == 0)
        printf("at the end: %zu\n", strlen(call_masu_code_error()));
}

static void *uses_late(void *none) {
    NAMED(masu_code_load);
    pthread_setspecific(key, &key);
    /* The thread's variables of the library exist from here on, and end before the key's value. */
    call_masu_code_load(arena, "bad", "no object", 9);
    return none;
}

static void *uses_variable(void *none) {
    NAMED(masu_code_load_file);
    NAMED(masu_code_symbol);
    masu_code_object object = call_masu_code_load_file(arena, path);
    long (*f)(void) = (long (*)(void))call_masu_code_symbol(arena, object, "f");
    printf("f() = %ld\n", f());
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return none;
}

int main(int argc, char **argv) {
    if (argc != 3 || (library = dlopen(argv[1], RTLD_NOW)) == NULL)
        return 1;
    path = argv[2];
    NAMED(masu_code_open);
    NAMED(masu_code_close);
    arena = call_masu_code_open(NULL);
    pthread_t thread;
    pthread_key_create(&key, at_end);
    pthread_create(&thread, NULL, uses_late, NULL);
    pthread_join(thread, NULL);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, uses_variable, NULL);
    pthread_barrier_wait(&barrier);
    call_masu_code_close(arena);
    dlclose(library);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    puts("ended");
    return 0;
}
