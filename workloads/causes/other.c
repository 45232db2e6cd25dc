/* other.c: causes that lie elsewhere than in memory: in output, and in where code lies. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cause.h"
#include "step.h"

/* ---- small-writes: a system call for each line ---- */

static uint64_t small_writes(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    uint64_t written = 0;
    for (uint64_t round = 0; round < 400000; round++) {
        int length = printf("%07llx\n", (unsigned long long)round);
        if (length < 0) cannot("write");
        written += (uint64_t)length;
    }
    return written;
}

/* ---- scattered-libraries: a library for each small function, called in turn ---- */

#define LIBRARIES 1000

static uint64_t scattered_libraries(void) {
    uint64_t (*steps[LIBRARIES])(uint64_t);
    if (!libraries) cannot("load libraries: --libraries names the folder that make filled");
    for (size_t i = 0; i < LIBRARIES; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%03zu.so", libraries, i);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void *step = library ? dlsym(library, "step") : NULL;
        if (!step) cannot(dlerror());
        memcpy(&steps[i], &step, sizeof step);
    }
    uint64_t value = 1;
    for (size_t i = 0; i < LIBRARIES; i++) {
        uint64_t expected = step_of(value);
        value = steps[i](value);
        if (value != expected) contents_wrong(&steps[i], sizeof value);
    }
    for (uint64_t round = 1; round < 30000; round++)
        for (size_t i = 0; i < LIBRARIES; i++) value = steps[i](value);
    return value;
}

/* ---- fork-storm: a process for each little piece of work ---- */

static uint64_t fork_storm(void) {
    uint64_t sum = 0;
    for (uint64_t round = 0; round < 6000; round++) {
        pid_t child = fork();
        if (child < 0) cannot("fork");
        if (child == 0) {
            uint64_t value = round;
            for (int i = 0; i < 100; i++) value = mix(value);
            _exit((int)(value & 0x7f));
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) cannot("wait for a child");
        sum += (uint64_t)WEXITSTATUS(status);
    }
    return sum;
}

const struct cause other_causes[] = {
    {"fork-storm", fork_storm, "a process for each 100 steps"},
    {"small-writes", small_writes, "a system call for each short line"},
    {"scattered-libraries", scattered_libraries, "each small function in a library of its own"},
    {0},
};
