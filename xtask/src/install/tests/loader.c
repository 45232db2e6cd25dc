#include <masu_code.h>
#include <stdio.h>
int main(int count, char **arguments) {
    masu_code *arena = masu_code_open(NULL);
    masu_code_object object = count < 2 ? 0 : masu_code_load_file(arena, arguments[1]);
    if (object == 0) {
        puts(masu_code_error());
        return 1;
    }
    int (*square)(int) = (int (*)(int))masu_code_symbol(arena, object, "square");
    printf("%d\n", square(7));
    masu_code_close(arena);
    return 0;
}
