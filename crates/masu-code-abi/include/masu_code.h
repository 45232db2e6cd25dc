/* masu_code.h: a code arena for C. Relocatable ELF objects (`cc -c`) are loaded densely into one
 * range of memory near the program, and unloaded while threads run. Link with -lmasu_code.
 *
 * As easy as dlopen:
 *
 *     masu_code *arena = masu_code_open(NULL);
 *     masu_code_object object = masu_code_load_file(arena, "square.o");
 *     if (object == 0)
 *         errx(1, "%s", masu_code_error());
 *     int (*square)(int) = (int (*)(int))masu_code_symbol(arena, object, "square");
 *
 * Functions that fail return NULL, 0 or -1 as said, and masu_code_error() says why, with the
 * object, section, offset and symbol. All may be called by several threads at once. */
#ifndef MASU_CODE_H
#define MASU_CODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arenas ---------------------------------------------------------------------------------- */

/* A range of memory that objects are loaded into. */
typedef struct masu_code masu_code;
/* A thread that may run loaded code. */
typedef struct masu_code_reader masu_code_reader;
/* An address that threads call through, and that is replaced while they do. */
typedef struct masu_code_entry masu_code_entry;
/* A loaded object; 0 is none. */
typedef uint64_t masu_code_object;

/* Where the range lies. Objects compiled without -fPIC reach data of libraries, such as stderr, only near them. */
enum { MASU_CODE_NEAR_PROGRAM = 0, MASU_CODE_NEAR = 1, MASU_CODE_LOW = 2, MASU_CODE_NEAR_LIBRARIES = 3 };
/* How code is written: any way, mapped twice, or made executable in batches. */
enum { MASU_CODE_ANY = 0, MASU_CODE_DUAL = 1, MASU_CODE_BATCHES = 2 };
/* Which tools learn of loaded code. */
enum { MASU_CODE_DEBUGGER = 1, MASU_CODE_UNWINDER = 2, MASU_CODE_PERF_MAP = 4 };

/* How an arena is opened. All zeros, or a NULL pointer, is a good choice, but for `tools`: NULL
 * tells the debugger and the unwinder. */
typedef struct masu_code_options {
    size_t size;     /* bytes of addresses; 0: 256 MiB */
    int place;       /* MASU_CODE_NEAR_PROGRAM, _NEAR (to `near_to`), _LOW (the lowest 2 GiB), _NEAR_LIBRARIES */
    const void *near_to;
    int writing;     /* MASU_CODE_ANY, _DUAL, _BATCHES */
    unsigned tools;  /* MASU_CODE_DEBUGGER | … */
    int keep;        /* keep objects, for masu_code_compact */
    /* The last to be asked for a symbol, by any thread; NULL where it has none. It may use the arena. */
    void *(*resolver)(const char *name, void *context);
    void *context;
} masu_code_options;

/* Opens an arena; NULL on failure. */
masu_code *masu_code_open(const masu_code_options *options);
/* Closes it. Its memory goes when its readers and entries are closed, too. */
void masu_code_close(masu_code *arena);

/* ---- Loading --------------------------------------------------------------------------------- */

/* Loads an object from memory, or from a file; 0 on failure. `name` is what errors call it. The
 * bytes are needed during the call only. Initializers run before it returns, and throw nothing: an
 * exception ends the program. */
masu_code_object masu_code_load(masu_code *arena, const char *name, const void *bytes, size_t size);
masu_code_object masu_code_load_file(masu_code *arena, const char *path);
/* The same, its symbols reached by its handle alone: for a function's next version. */
masu_code_object masu_code_load_private(masu_code *arena, const char *name, const void *bytes, size_t size);
/* Loads many that refer to each other, all or none; 0, or -1 on failure. */
int masu_code_load_all(masu_code *arena, size_t count, const char *const *names,
                       const void *const *bytes, const size_t *sizes, masu_code_object *objects);

/* Loads a function that the program generates itself. `write` gets `size` bytes to write its code into, the
 * address that the code will run at, which may be another one, and `context`. It must return: no longjmp, no
 * exception. The function is an object with one symbol, `name`, reached by its handle alone. 0 on failure. */
masu_code_object masu_code_load_code(masu_code *arena, const char *name, size_t size, size_t align,
                                     void (*write)(void *bytes, size_t size, const void *address, void *context),
                                     void *context);

/* The address of an object's symbol, valid until it is unloaded; NULL where it has none. */
void *masu_code_symbol(masu_code *arena, masu_code_object object, const char *name);
/* The address of a symbol that any object publishes; NULL where none does. */
void *masu_code_find(masu_code *arena, const char *name);

/* ---- Unloading ------------------------------------------------------------------------------- */

/* Unloads an object: it is freed when no entry and no other object leads to it and all readers
 * were quiescent. 0, or -1 on failure. */
int masu_code_unload(masu_code *arena, masu_code_object object);
/* Unloads objects together, all or none: for those that hold pointers to each other of which no
 * symbol tells. Destructors of the last loaded run first, and nothing is freed before all have. 0,
 * or -1 on failure: one of them is not loaded, or stands there twice. */
int masu_code_unload_all(masu_code *arena, size_t count, const masu_code_object *objects);
/* Frees what can be freed, which loading and unloading do, too; returns how many objects. */
size_t masu_code_collect(masu_code *arena);
/* Moves objects together; returns how many, or -1 on failure. */
long masu_code_compact(masu_code *arena);

/* ---- Readers --------------------------------------------------------------------------------- */

/* Registers the calling thread, which may run loaded code until it says otherwise. */
masu_code_reader *masu_code_reader_open(masu_code *arena);
void masu_code_reader_close(masu_code_reader *reader);
/* This thread runs no loaded code now; and: none until masu_code_back. */
void masu_code_quiescent(masu_code_reader *reader);
void masu_code_away(masu_code_reader *reader);
void masu_code_back(masu_code_reader *reader);

/* ---- Entries --------------------------------------------------------------------------------- */

/* Makes an entry that leads to a symbol of an object, or to any address; NULL on failure. Objects
 * loaded later may call it by `name`. */
masu_code_entry *masu_code_entry_open(masu_code *arena, const char *name, masu_code_object object,
                                      const char *symbol);
masu_code_entry *masu_code_entry_at(masu_code *arena, const char *name, const void *address);
/* Where calls go now. */
void *masu_code_entry_get(const masu_code_entry *entry);
/* Makes it lead elsewhere, at once for all threads; 0, or -1 on failure. */
int masu_code_entry_replace(masu_code_entry *entry, masu_code_object object, const char *symbol);
int masu_code_entry_replace_at(masu_code_entry *entry, const void *address);
/* Gives the handle back; the entry stays as long as the arena. */
void masu_code_entry_close(masu_code_entry *entry);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Why this thread's last call failed; valid until its next failure. Never NULL. */
const char *masu_code_error(void);

#ifdef __cplusplus
}
#endif

#endif
