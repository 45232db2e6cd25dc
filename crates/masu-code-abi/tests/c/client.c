/* A C program on masu_code.h: load, call, swap, unload, errors. Prints what it saw. */
#include <masu_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long from_program(long x) { return x + 1000; }

static void *resolve(const char *name, void *context) {
    ++*(int *)context;
    return strcmp(name, "from_program") == 0 ? (void *)from_program : NULL;
}

static void *slurp(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    void *bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    int asked = 0;
    masu_code_options options = {.size = 16 << 20, .tools = MASU_CODE_UNWINDER, .keep = 1,
                                 .resolver = resolve, .context = &asked};
    masu_code *arena = masu_code_open(&options);
    if (argc < 5 || arena == NULL)
        return 1;
    masu_code_object one = masu_code_load_file(arena, argv[1]);
    long (*f)(long) = (long (*)(long))masu_code_symbol(arena, one, "f");
    printf("f(1) = %ld, resolver asked %d\n", f(1), asked);
    masu_code_entry *entry = masu_code_entry_open(arena, "method", one, "f");
    masu_code_reader *reader = masu_code_reader_open(arena);
    size_t size;
    void *bytes = slurp(argv[2], &size);
    masu_code_object two = masu_code_load_private(arena, "two", bytes, size);
    free(bytes);
    printf("replace %d, ", masu_code_entry_replace(entry, two, "f"));
    printf("unload %d, ", masu_code_unload(arena, one));
    printf("again %d: ", masu_code_unload(arena, one));
    printf("%s\n", masu_code_error());
    printf("collected %zu", masu_code_collect(arena));
    masu_code_quiescent(reader);
    printf(", then %zu\n", masu_code_collect(arena));
    f = (long (*)(long))masu_code_entry_get(entry);
    printf("f(1) = %ld\n", f(1));
    printf("bad: %d: ", (int)masu_code_load(arena, "bad", "no object", 9));
    printf("%s\n", masu_code_error());
    printf("none: %d: ", masu_code_symbol(arena, two, "g") != NULL);
    printf("%s\n", masu_code_error());
    /* Plug-ins: the second's destructor calls the first, and no symbol tells. */
    masu_code_object plugins[3];
    plugins[0] = masu_code_load_file(arena, argv[3]);
    plugins[1] = masu_code_load_file(arena, argv[4]);
    void (*meet)(void *) = (void (*)(void *))masu_code_symbol(arena, plugins[1], "meet");
    meet(masu_code_symbol(arena, plugins[0], "said"));
    plugins[2] = plugins[0];
    printf("twice %d: ", masu_code_unload_all(arena, 3, plugins));
    printf("%s\n", masu_code_error());
    printf("none %d, ", masu_code_unload_all(arena, 0, NULL));
    printf("all %d\n", masu_code_unload_all(arena, 2, plugins));
    masu_code_quiescent(reader);
    printf("collected %zu\n", masu_code_collect(arena));
    masu_code_entry_close(entry);
    masu_code_reader_close(reader);
    masu_code_close(arena);
    return 0;
}
