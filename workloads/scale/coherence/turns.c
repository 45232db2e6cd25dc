/* turns.c: what turns.h promises.
 *
 * The one hard idea is that nobody may wait for ever. The emulator stops all threads now and then, and waits until each
 * has left translated code; a thread that waits for its turn in here has not. So the waiting thread looks up from time to
 * time, and if nobody ran at all since, lets everyone go for one step: that is a slip, and it is counted. */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "lines.h"
#include "turns.h"

enum { SLIP_MS = 300, YIELD_QUANTA = 4, NO_CORE = -1 };

enum state { STATE_NONE, STATE_READY, STATE_AWAY };

struct seat {
    enum state state;
    uint64_t clock; /* instructions; only its thread and those that hold the lock touch it */
    uint64_t limit; /* the clock at which the turn ends */
    pthread_cond_t called;
};

static struct seat seats[CORES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int turn = NO_CORE;
static _Atomic bool stopped;
static uint64_t quantum, random_state, given, slipped;
/* Grows with each slip: a thread that waited for its turn before may go one step. */
static uint64_t slip_number;
static unsigned cores_used;

void turns_begin(uint64_t instructions, uint64_t seed) {
    quantum = instructions;
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    for (unsigned i = 0; i < CORES; i++) pthread_cond_init(&seats[i].called, NULL);
}

static uint64_t draw(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* The thread that is furthest behind; of several the next after `core`. */
static int furthest_behind(unsigned core) {
    int best = NO_CORE;
    for (unsigned i = 1; i <= cores_used; i++) {
        unsigned other = (core + i) % cores_used;
        const struct seat *seat = &seats[other];
        if (seat->state == STATE_READY && (best == NO_CORE || seat->clock < seats[best].clock)) best = (int)other;
    }
    return best;
}

static void give(int core) {
    turn = core;
    if (core == NO_CORE) return;
    given++;
    struct seat *seat = &seats[core];
    seat->limit = seat->clock + quantum / 2 + draw() % quantum;
    pthread_cond_signal(&seat->called);
}

void turns_join(unsigned core, int parent) {
    pthread_mutex_lock(&lock);
    struct seat *seat = &seats[core];
    if (core >= cores_used) cores_used = core + 1;
    seat->state = STATE_READY;
    seat->clock = parent == NO_CORE ? 0 : seats[parent].clock;
    if (turn == NO_CORE) give((int)core);
    pthread_mutex_unlock(&lock);
}

/* Lets everyone go one step, because nobody does. */
static void slip(void) {
    slipped++;
    slip_number++;
    for (unsigned i = 0; i < cores_used; i++) pthread_cond_signal(&seats[i].called);
}

static void wait_for_turn(unsigned core) {
    struct seat *seat = &seats[core];
    uint64_t given_then = given, slip_then = slip_number;
    while (turn != (int)core && !stopped && slip_number == slip_then) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SLIP_MS * 1000000l;
        until.tv_sec += until.tv_nsec / 1000000000l;
        until.tv_nsec %= 1000000000l;
        bool timed_out = pthread_cond_timedwait(&seat->called, &lock, &until) != 0;
        if (timed_out && given == given_then && turn != (int)core) {
            /* The one with the turn does not come: the next one has it. */
            if (turn != NO_CORE && seats[turn].state == STATE_READY) seats[turn].clock += quantum;
            give((int)core);
            slip();
        }
        given_then = given;
    }
}

void turns_run(unsigned core, uint64_t instructions) {
    struct seat *seat = &seats[core];
    if (stopped) return;
    if (turn != (int)core || seat->clock >= seat->limit) {
        pthread_mutex_lock(&lock);
        seat->state = STATE_READY;
        if (turn == (int)core) {
            int next = furthest_behind(core);
            give(next == NO_CORE ? (int)core : next);
        } else if (turn == NO_CORE) {
            give(furthest_behind(core));
        }
        wait_for_turn(core);
        pthread_mutex_unlock(&lock);
    }
    seat->clock += instructions;
}

static void stand_up(unsigned core, enum state state) {
    pthread_mutex_lock(&lock);
    seats[core].state = state;
    if (turn == (int)core) give(furthest_behind(core));
    pthread_mutex_unlock(&lock);
}

void turns_leave(unsigned core) { stand_up(core, STATE_AWAY); }
void turns_end(unsigned core) { stand_up(core, STATE_NONE); }

void turns_return(unsigned core) {
    pthread_mutex_lock(&lock);
    struct seat *seat = &seats[core];
    if (seat->state == STATE_AWAY) {
        int behind = furthest_behind(core);
        if (behind != NO_CORE && seat->clock < seats[behind].clock) seat->clock = seats[behind].clock;
        seat->state = STATE_READY;
        if (turn == NO_CORE) give((int)core);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t turns_clock(unsigned core) { return seats[core].clock; }

void turns_yield(unsigned core) {
    pthread_mutex_lock(&lock);
    seats[core].clock += YIELD_QUANTA * quantum;
    seats[core].limit = 0;
    pthread_mutex_unlock(&lock);
}

void turns_stop(void) {
    pthread_mutex_lock(&lock);
    stopped = true;
    slip();
    slipped--;
    pthread_mutex_unlock(&lock);
}

uint64_t turns_given(void) { return given; }
uint64_t turns_slipped(void) { return slipped; }
