/* Calls of masu_code.h with NULL, such as those of a program that did not look whether the arena opened. Prints what it saw. */
#include <masu_code.h>
#include <stdio.h>

int main(void) {
    const char *none = NULL;
    const void *nothing = NULL;
    size_t size = 1;
    masu_code_object object = 0;
    masu_code_options huge = {.size = (size_t)-1};
    masu_code *arena = masu_code_open(&huge);
    printf("%d\n", arena != NULL);
    masu_code_close(arena);
    masu_code_quiescent(NULL);
    masu_code_away(NULL);
    masu_code_back(NULL);
    masu_code_reader_close(masu_code_reader_open(arena));
    masu_code_entry_close(masu_code_entry_open(arena, "name", 1, "f"));
    masu_code_entry_close(masu_code_entry_at(arena, "name", &size));
    printf("%d %d %d\n", (int)masu_code_load(arena, "a", "b", 1), (int)masu_code_load_private(arena, "a", "b", 1),
           masu_code_load_all(arena, 1, &none, &nothing, &size, &object));
    printf("%d %d %d\n", masu_code_symbol(arena, 1, "f") != NULL, masu_code_find(arena, "f") != NULL,
           masu_code_unload(arena, 1));
    printf("%d %d %ld\n", masu_code_unload_all(arena, 0, NULL), (int)masu_code_collect(arena), masu_code_compact(arena));
    printf("%d %d %d\n", masu_code_entry_get(NULL) != NULL, masu_code_entry_replace(NULL, 1, "f"),
           masu_code_entry_replace_at(NULL, NULL));
    printf("%s\n", masu_code_error());
    arena = masu_code_open(NULL);
    printf("%d %d\n", (int)masu_code_load_code(arena, "f", 16, 16, NULL, NULL),
           masu_code_load_all(arena, 1, NULL, NULL, NULL, NULL));
    printf("%s\n", masu_code_error());
    printf("%d\n", masu_code_unload_all(arena, 1, NULL));
    masu_code_close(arena);
    return 0;
}
