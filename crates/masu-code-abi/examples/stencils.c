/* stencils.c: a copy-and-patch JIT. Compiles an expression in reverse Polish notation, such as "x 3 * 4 +",
 * to a function `long f(long x)`: copies the machine code of each word and writes the constants into it.
 *
 *     cc stencils.c -o stencils -lmasu_code && ./stencils 'x 3 * 4 +' 10
 *
 * A value is in rax, those below it are on the stack; x is in rdi. */
#include <err.h>
#include <masu_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The assembler makes the stencils: the machine code between two symbols. */
#define STENCIL(name, code)                                                                                  \
    extern const char name[], name##_end[];                                                                  \
    __asm__(".pushsection .rodata\n" #name ": " code "\n" #name "_end: .popsection")

STENCIL(argument, "push %rax; mov %rdi, %rax");
/* Its last eight bytes are the constant. */
STENCIL(constant, "push %rax; movabs $0x1122334455667788, %rax");
STENCIL(add, "pop %rcx; add %rcx, %rax");
STENCIL(subtract, "pop %rcx; sub %rax, %rcx; mov %rcx, %rax");
STENCIL(multiply, "pop %rcx; imul %rcx, %rax");
/* The first word has pushed what was in rax before the call. */
STENCIL(give_back, "pop %rcx; ret");

struct stencil {
    const char *code, *end;
    int takes; /* values */
};

static struct stencil stencil_of(const char *word) {
    switch (strlen(word) == 1 ? *word : 0) {
    case 'x': return (struct stencil){argument, argument_end, 0};
    case '+': return (struct stencil){add, add_end, 2};
    case '-': return (struct stencil){subtract, subtract_end, 2};
    case '*': return (struct stencil){multiply, multiply_end, 2};
    default: return (struct stencil){constant, constant_end, 0};
    }
}

struct expression {
    char *words[64];
    size_t count;
};

/* Gets the place to write at, which is not where the code will run: the address for that is `address`. */
static void write_code(void *place, size_t size, const void *address, void *context) {
    const struct expression *expression = context;
    char *to = place;
    for (size_t i = 0; i < expression->count; ++i) {
        struct stencil stencil = stencil_of(expression->words[i]);
        memcpy(to, stencil.code, stencil.end - stencil.code);
        to += stencil.end - stencil.code;
        if (stencil.code == constant) {
            long value = strtol(expression->words[i], NULL, 0);
            memcpy(to - sizeof value, &value, sizeof value);
        }
    }
    memcpy(to, give_back, give_back_end - give_back);
    printf("%zu bytes at %s16 bytes\n", size, (size_t)address % 16 == 0 ? "a multiple of " : "no multiple of ");
}

static masu_code_object compile(masu_code *arena, const char *name, char *text) {
    struct expression expression = {.count = 0};
    size_t size = give_back_end - give_back;
    int depth = 0;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        struct stencil stencil = stencil_of(word);
        char *end = "";
        if (stencil.code == constant)
            strtol(word, &end, 0);
        if (*end != '\0' || depth < stencil.takes || expression.count == 64)
            errx(1, "%s: no number, too few values before it, or the 65th word", word);
        depth += 1 - stencil.takes;
        expression.words[expression.count++] = word;
        size += stencil.end - stencil.code;
    }
    if (depth != 1)
        errx(1, "%d values are left, not one", depth);
    return masu_code_load_code(arena, name, size, 16, write_code, &expression);
}

int main(int argc, char **argv) {
    if (argc < 3)
        errx(1, "usage: stencils EXPRESSION NUMBER...");
    masu_code *arena = masu_code_open(NULL);
    masu_code_object object = arena == NULL ? 0 : compile(arena, "f", argv[1]);
    if (object == 0)
        errx(1, "%s", masu_code_error());
    long (*f)(long) = (long (*)(long))masu_code_symbol(arena, object, "f");
    for (int i = 2; i < argc; ++i)
        printf("f(%s) = %ld\n", argv[i], f(strtol(argv[i], NULL, 0)));
    masu_code_unload(arena, object);
    masu_code_close(arena);
    return 0;
}
