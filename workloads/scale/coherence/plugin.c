/* plugin.c: watches a program under qemu-x86_64: counts what each phase of it does (marks.h), has its threads take
 * turns (turns.h), and moves lines between the caches of a machine with a core for each of them (lines.h).
 *
 *     qemu-x86_64 -plugin coherence.so,out=FILE[,quantum=N][,seed=N][,cpus=N] PROGRAM ...
 *
 * A thread takes the lowest core that is free, with what that core's cache holds. The program is shown `cpus` CPUs where
 * the kernel is asked for them; what it reads below /sys is the caller's to show (qemu's option -L). Its clocks go by
 * instructions. The report is written when the program exits; a program that does not exit has none. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../marks.h"
#include "lines.h"
#include "locks.h"
#include "moves.h"
#include "qemu.h"
#include "turns.h"

#define SECOND_NS INT64_C(1000000000)
#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

enum { VCPUS = 4096, NAMES = 32, THREADS = 1024, NO_CORE = -1, FUTEX_COMMAND = 127, CPUS_MAX = 64 };
/* The clocks that count time, by number, and how many instructions take a nanosecond by them. */
enum { CLOCKS = 8, INSTRUCTIONS_PER_NS = 3 };

struct counts {
    uint64_t operations, instructions, atomics, calls, came[CAMES], by_program;
};

/* One guest thread's core. Only that thread changes it, but for `is_used`. */
struct core {
    bool is_used;
    bool waits;
    unsigned phase;
    uint64_t argument[3]; /* of the system call that it is in */
    struct came_to now;
    struct counts counts[PHASES];
};

/* Where a thread's stack began, and where what is local to it ends. */
struct thread {
    uint64_t stack, local;
};

/* A name for addresses. */
struct range {
    uint64_t start, end;
    char name[32];
};

static struct core cores[CORES];
static int core_of[VCPUS];
/* What each clock said when it was first read, less what instructions took until then. */
static int64_t clock_start[CLOCKS];
static struct range names[NAMES];
static unsigned names_used;
static struct thread threads[THREADS];
static unsigned threads_used;
static uint64_t code_start, code_end;
static const char *out;
static unsigned cpus = 64;
/* Guards the caches, the moves and who has which core: one thread has the turn, but after a slip several step. */
static pthread_spinlock_t lock;
static __thread int parent_core = NO_CORE;

/* Copies between the guest's memory, which is at the same addresses here, and ours; false where it is not mapped. */
static bool copy(uint64_t guest, void *ours, size_t bytes, bool to_guest) {
    struct iovec here = {ours, bytes}, there = {(void *)(uintptr_t)guest, bytes};
    ssize_t copied = to_guest ? process_vm_writev(getpid(), &here, 1, &there, 1, 0)
                              : process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return copied == (ssize_t)bytes;
}

static struct core *core_at(unsigned vcpu) {
    if (vcpu >= VCPUS || core_of[vcpu] == NO_CORE) return NULL;
    return &cores[core_of[vcpu]];
}

static void add(struct counts *to, const struct counts *what) {
    to->operations += what->operations;
    to->instructions += what->instructions;
    to->atomics += what->atomics;
    to->calls += what->calls;
    to->by_program += what->by_program;
    for (unsigned i = 0; i < CAMES; i++) to->came[i] += what->came[i];
}

/* Called by the thread that starts the new one. */
static void on_thread(qemu_plugin_id_t id, unsigned vcpu) {
    (void)id;
    if (vcpu >= VCPUS) return;
    pthread_spin_lock(&lock);
    int core = 0;
    while (core < CORES && cores[core].is_used) core++;
    if (core < CORES) {
        cores[core].is_used = true;
        cores[core].waits = false;
        cores[core].phase = parent_core == NO_CORE ? PHASE_NONE : cores[parent_core].phase;
    }
    pthread_spin_unlock(&lock);
    if (core == CORES) {
        fprintf(stderr, "coherence: more than %d threads at once\n", CORES);
        _exit(125);
    }
    turns_join((unsigned)core, parent_core);
    core_of[vcpu] = core;
}

static void thread_ends(unsigned vcpu) {
    int core = core_of[vcpu];
    turns_end((unsigned)core);
    pthread_spin_lock(&lock);
    core_of[vcpu] = NO_CORE;
    cores[core].is_used = false;
    locks_end((unsigned)core);
    pthread_spin_unlock(&lock);
}

static struct counts *counts_of(struct core *core) { return core->waits ? NULL : &core->counts[core->phase]; }

static void on_block(unsigned vcpu, void *instructions) {
    struct core *core = core_at(vcpu);
    if (!core) return;
    turns_run((unsigned)(core - cores), (uintptr_t)instructions);
    core->now.instructions += (uintptr_t)instructions;
    struct counts *counts = counts_of(core);
    if (counts) counts->instructions += (uintptr_t)instructions;
}

static void on_atomic(unsigned vcpu, void *data) {
    (void)data;
    struct core *core = core_at(vcpu);
    struct counts *counts = core ? counts_of(core) : NULL;
    if (counts) counts->atomics++;
}

/* What the guest has at an address that it has just written. */
static uint64_t value_at(uint64_t address, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)address, bytes < sizeof value ? bytes : sizeof value);
    return value;
}

static bool is_programs(uint64_t address) {
    for (unsigned i = 0; i < names_used; i++)
        if (address >= names[i].start && address < names[i].end) return true;
    return false;
}

static void write_word(struct core *core, uint64_t address, unsigned bytes, bool atomic, uint64_t moves_before) {
    unsigned index = (unsigned)(core - cores);
    if (!atomic && !locks_any(index)) return;
    uint64_t value = value_at(address, bytes);
    if (is_programs(address)) return;
    struct came_to now = core->now;
    /* The move that brought the word is part of what holding it takes; nothing else moved since. */
    if (value != 0) now.moves = moves_before;
    pthread_spin_lock(&lock);
    locks_write(index, core->phase, address, value, atomic, now);
    pthread_spin_unlock(&lock);
}

static void access_line(struct core *core, uint64_t line, bool is_store, uint64_t instruction) {
    pthread_spin_lock(&lock);
    enum came came = lines_access(line, (unsigned)(core - cores), is_store);
    if (came != CAME_HIT && !core->waits) {
        struct counts *counts = &core->counts[core->phase];
        counts->came[came]++;
        if (came != CAME_COLD) core->now.moves++;
        if (came != CAME_COLD && core->phase != PHASE_NONE) {
            if (instruction >= code_start && instruction < code_end) counts->by_program++;
            moves_add(core->phase, line, instruction);
        }
    }
    pthread_spin_unlock(&lock);
}

/* Set in what is known of an instruction besides its address, which has fewer bits. */
#define ATOMIC (1ull << 63)

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    struct core *core = core_at(vcpu);
    if (!core) return;
    bool is_store = qemu_plugin_mem_is_store(info), atomic = (uintptr_t)data & ATOMIC;
    unsigned bytes = 1u << qemu_plugin_mem_size_shift(info);
    uint64_t last = address + bytes - 1, moves_before = core->now.moves;
    for (uint64_t line = address >> LINE_SHIFT; line <= last >> LINE_SHIFT; line++)
        access_line(core, line, is_store, (uintptr_t)data & ~ATOMIC);
    if (is_store) write_word(core, address, bytes, atomic, moves_before);
}

/* Whether the instruction is one that locks the bus: its prefix, or an exchange with memory. */
static bool is_atomic(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = bytes[i];
        if (byte == 0xf0) return true;
        bool is_prefix = byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40 ||
                         (byte & 0xe7) == 0x26 || byte == 0x64 || byte == 0x65;
        if (is_prefix) continue;
        bool is_exchange = byte == 0x86 || byte == 0x87;
        return is_exchange && i + 1 < size && bytes[i + 1] < 0xc0;
    }
    return false;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)count);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        bool atomic = is_atomic(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
        uint64_t data = qemu_plugin_insn_vaddr(instruction) | (atomic ? ATOMIC : 0);
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                         (void *)(uintptr_t)data);
        if (atomic)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_atomic, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static void on_mark(struct core *core, uint64_t verb, uint64_t first, uint64_t second, uint64_t third) {
    switch (verb) {
    case MARK_PHASE:
        if (first < PHASES) core->phase = (unsigned)first;
        break;
    case MARK_OPERATIONS: core->counts[core->phase].operations += first; break;
    case MARK_WAITS: core->waits = first != 0; break;
    case MARK_CODE:
        code_start = first;
        code_end = second;
        break;
    case MARK_NAME:
        if (names_used < NAMES) {
            struct range *range = &names[names_used++];
            range->start = first;
            range->end = second;
            if (!copy(third, range->name, sizeof range->name - 1, false)) strcpy(range->name, "?");
        }
        break;
    }
}

static void note_thread(uint64_t stack, uint64_t local) {
    pthread_spin_lock(&lock);
    bool is_known = false;
    /* Stacks are used again. */
    for (unsigned i = 0; i < threads_used; i++) is_known |= threads[i].stack == stack && threads[i].local == local;
    if (!is_known && threads_used < THREADS) threads[threads_used++] = (struct thread){stack, local};
    pthread_spin_unlock(&lock);
}

static void write_report(void) {
    FILE *to = fopen(out, "w");
    if (!to) {
        fprintf(stderr, "coherence: cannot write %s\n", out);
        _exit(125);
    }
    fprintf(to, "coherence 1\n");
    for (unsigned phase = PHASE_START; phase < PHASES; phase++) {
        struct counts sum = {0};
        for (unsigned i = 0; i < CORES; i++) add(&sum, &cores[i].counts[phase]);
        fprintf(to, "phase %u operations %lu instructions %lu atomics %lu calls %lu cold %lu read_dirty %lu "
                "read_clean %lu write %lu upgrade %lu by_program %lu\n", phase, (unsigned long)sum.operations,
                (unsigned long)sum.instructions, (unsigned long)sum.atomics, (unsigned long)sum.calls,
                (unsigned long)sum.came[CAME_COLD], (unsigned long)sum.came[CAME_READ_DIRTY],
                (unsigned long)sum.came[CAME_READ_CLEAN], (unsigned long)sum.came[CAME_WRITE],
                (unsigned long)sum.came[CAME_UPGRADE], (unsigned long)sum.by_program);
    }
    fprintf(to, "turns %lu\nslips %lu\n", (unsigned long)turns_given(), (unsigned long)turns_slipped());
    for (unsigned i = 0; i < names_used; i++)
        fprintf(to, "name %lx %lx %s\n", (unsigned long)names[i].start, (unsigned long)names[i].end, names[i].name);
    for (unsigned i = 0; i < threads_used; i++)
        fprintf(to, "thread %lx %lx\n", (unsigned long)threads[i].stack, (unsigned long)threads[i].local);
    moves_write(to);
    locks_write_report(to);
    FILE *maps = fopen("/proc/self/maps", "r");
    char text[512];
    while (maps && fgets(text, sizeof text, maps)) fprintf(to, "map %s", text);
    if (maps) fclose(maps);
    fprintf(to, "end\n");
    fclose(to);
}

static bool may_sleep(int64_t number, uint64_t operation) {
    switch (number) {
    case SYS_futex: {
        /* Those that wait: FUTEX_WAIT, _LOCK_PI, _WAIT_BITSET, _WAIT_REQUEUE_PI. */
        uint64_t command = operation & FUTEX_COMMAND;
        return command == 0 || command == 6 || command == 9 || command == 11;
    }
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait: return true;
    default: return false;
    }
}

static void on_call(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                    uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)f, (void)g, (void)h;
    struct core *core = core_at(vcpu);
    if (!core) return;
    unsigned index = (unsigned)(core - cores);
    if (number == MARK_CALL) {
        on_mark(core, a, b, c, d);
        return;
    }
    struct counts *counts = counts_of(core);
    if (counts) counts->calls++;
    core->now.calls++;
    core->argument[0] = a;
    core->argument[1] = b;
    core->argument[2] = c;
    parent_core = (int)index;
    switch (number) {
    case SYS_exit: thread_ends(vcpu); break;
    case SYS_exit_group:
        turns_stop();
        pthread_spin_lock(&lock);
        write_report();
        pthread_spin_unlock(&lock);
        break;
    case SYS_clone: note_thread(b, e); break;
    case SYS_sched_yield: turns_yield(index); break;
    default:
        if (may_sleep(number, b)) turns_leave(index);
    }
}

static void forget(uint64_t start, uint64_t bytes) {
    pthread_spin_lock(&lock);
    lines_forget(start, bytes);
    pthread_spin_unlock(&lock);
}

/* The kernel says that there are more CPUs than there are. */
static void show_cpus(uint64_t mask_at, uint64_t bytes) {
    uint64_t mask = cpus >= 64 ? ~0ull : (1ull << cpus) - 1;
    if (bytes >= sizeof mask) copy(mask_at, &mask, sizeof mask, true);
}

static void show_cpu(const struct core *core) {
    uint32_t cpu = (uint32_t)(core - cores) % cpus, node = 0;
    if (core->argument[0]) copy(core->argument[0], &cpu, sizeof cpu, true);
    if (core->argument[1]) copy(core->argument[1], &node, sizeof node, true);
}

/* Instructions say what time it is: an emulator takes a hundred times as long for them, and differs from run to run. */
static void show_time(const struct core *core) {
    uint64_t clock = core->argument[0], took = turns_clock((unsigned)(core - cores)) / INSTRUCTIONS_PER_NS;
    struct timespec now;
    bool counts_cpu_time = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    if (clock >= CLOCKS || counts_cpu_time || !copy(core->argument[1], &now, sizeof now, false)) return;
    pthread_spin_lock(&lock);
    if (clock_start[clock] == 0) clock_start[clock] = now.tv_sec * SECOND_NS + now.tv_nsec - (int64_t)took;
    int64_t ns = clock_start[clock] + (int64_t)took;
    pthread_spin_unlock(&lock);
    now = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
    copy(core->argument[1], &now, sizeof now, true);
}

static void on_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    struct core *core = core_at(vcpu);
    if (!core || number == MARK_CALL) return;
    const uint64_t *argument = core->argument;
    bool failed = result < 0 && result > -4096;
    if (!failed) {
        switch (number) {
        case SYS_mmap: forget((uint64_t)result, argument[1]); break;
        case SYS_munmap: forget(argument[0], argument[1]); break;
        case SYS_mremap: forget(argument[0], argument[1]); break;
        case SYS_madvise:
            if (argument[2] == MADV_DONTNEED) forget(argument[0], argument[1]);
            break;
        case SYS_sched_getaffinity: show_cpus(argument[2], (uint64_t)result); break;
        case SYS_getcpu: show_cpu(core); break;
        case SYS_clock_gettime: show_time(core); break;
        }
    }
    if (may_sleep(number, argument[1])) turns_return((unsigned)(core - cores));
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **options) {
    (void)info;
    uint64_t quantum = 300, seed = 1;
    for (int i = 0; i < count; i++) {
        char *value = strchr(options[i], '=');
        if (!value) continue;
        *value++ = '\0';
        if (strcmp(options[i], "out") == 0) out = value;
        if (strcmp(options[i], "quantum") == 0) quantum = strtoull(value, NULL, 10);
        if (strcmp(options[i], "seed") == 0) seed = strtoull(value, NULL, 10);
        if (strcmp(options[i], "cpus") == 0) cpus = (unsigned)strtoul(value, NULL, 10);
    }
    if (!out || quantum == 0 || cpus == 0 || cpus > CPUS_MAX) {
        fprintf(stderr, "coherence: out=FILE, quantum and cpus of 1 to %d are needed\n", CPUS_MAX);
        return 1;
    }
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    for (unsigned i = 0; i < VCPUS; i++) core_of[i] = NO_CORE;
    turns_begin(quantum, seed);
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    return 0;
}
