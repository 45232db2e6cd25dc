/* Loads an object, with the tools that TOOLS names, and calls `work` in it. */
#include <masu_code.h>
#include <stdio.h>

int main(int argc, char **argv) {
    masu_code_options options = {.tools = TOOLS};
    masu_code *arena = masu_code_open(&options);
    masu_code_object object = masu_code_load_file(arena, argv[1]);
    long (*work)(long) = (long (*)(long))masu_code_symbol(arena, object, "work");
    if (!work) {
        puts(masu_code_error());
        return 1;
    }
    return argc > 1 ? (int)(work(argc > 2 ? 100000000 : 3) & 1) : 9;
}
