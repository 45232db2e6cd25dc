/* pingpong.c: two threads that hand one line to and fro, so that its moves are known.
 *
 *     pingpong ROUNDS [apart | locked]
 *
 * In each of the rounds both threads write the line once, in turns, by a locked addition: the line moves once for each,
 * whatever the order in which they read it while they wait, which is not counted. `apart`: each has a line of its own,
 * and none moves. `locked`: the line is a lock, which each takes and gives back. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marks.h"

struct line {
    _Alignas(64) _Atomic uint64_t value;
};

/* Whose turn it is: even, odd. It is only looked at and changed while the threads wait. */
static struct line turn;
/* What moves. */
static struct line lines[2];
static uint64_t rounds;
static bool apart, locked;

static void *play(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    struct line *mine = &lines[apart ? me : 0];
    for (uint64_t round = 0; round < rounds; round++) {
        while (atomic_load(&turn.value) % 2 != me) sched_yield();
        /* The first round brings the line for the first time, which is no move. */
        syscall(MARK_CALL, MARK_PHASE, round == 0 ? PHASE_NONE : PHASE_STEADY);
        if (locked) {
            atomic_exchange_explicit(&mine->value, 1, memory_order_acquire);
            atomic_store_explicit(&mine->value, 0, memory_order_release);
        } else {
            atomic_fetch_add_explicit(&mine->value, 1, memory_order_relaxed);
        }
        syscall(MARK_CALL, MARK_OPERATIONS, 1);
        syscall(MARK_CALL, MARK_PHASE, PHASE_NONE);
        atomic_fetch_add(&turn.value, 1);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    rounds = strtoull(arguments[1], NULL, 10) + 1;
    apart = count > 2 && strcmp(arguments[2], "apart") == 0;
    locked = count > 2 && strcmp(arguments[2], "locked") == 0;
    pthread_t other;
    if (pthread_create(&other, NULL, play, (void *)1) != 0) return 1;
    play((void *)0);
    pthread_join(other, NULL);
    return 0;
}
