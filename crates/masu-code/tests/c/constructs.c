/* What compilers emit relocations for, folded into one number. Linked by the system's linker with
 * `main` it prints what the arena's copy must return. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int nobody_defines_this(int) __attribute__((weak));
extern int nobody_has_this_either __attribute__((weak));
int may_be_overridden(void) __attribute__((weak));
int may_be_overridden(void) { return 11; }

static int counter;
int exported = 5;
static int zeros[4000];
int common_or_not[100];
static const double weights[] = {0.5, 1.25, 2.0, 1e300};
static const char *const names[] = {"alpha", "beta", "gamma", "delta"};
static int *const places[] = {&exported, &counter, &zeros[7], &common_or_not[3]};

static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
int (*operations[])(int) = {twice, thrice, abs};

static int by_order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((noinline)) int choose(int kind, int x) {
    switch (kind) {
    case 0: return x + 3;
    case 1: return x * 7;
    case 2: return x - 9;
    case 3: return x ^ 0x55;
    case 4: return x << 2;
    case 5: return exported + x;
    case 6: return counter++ + x;
    case 7: return (int)strlen(names[x & 3]);
    default: return -x;
    }
}

__attribute__((noinline)) long interpret(const unsigned char *code) {
    static const void *const labels[] = {&&push, &&add, &&end};
    long stack[8] = {0}, *top = stack;
    goto *labels[*code];
push:
    *++top = code[1];
    code += 2;
    goto *labels[*code];
add:
    top[-1] += *top;
    top--;
    code++;
    goto *labels[*code];
end:
    return *top;
}

__attribute__((noinline)) double weigh(int i) { return sqrt(weights[i & 3]) * 3.0 + 0.125f; }

long check(void) {
    long sum = 1;
    char text[64];
    int numbers[] = {5, 3, 9, -1, 7};
    counter = 0;
    for (int i = 0; i < 64; i++) {
        sum = sum * 31 + choose(i % 9, i);
        sum += operations[i % 3](i - 30);
        sum += *places[i % 4];
        zeros[(i * 61) % 4000] += i;
        common_or_not[i] += zeros[i] + 1;
    }
    qsort(numbers, 5, sizeof *numbers, by_order);
    for (int i = 0; i < 5; i++)
        sum = sum * 17 + numbers[i];
    snprintf(text, sizeof text, "%s %d %.3f", names[1], exported, weigh(2));
    for (const char *c = text; *c; c++)
        sum = sum * 131 + *c;
    sum += (long)(weigh(1) * 1000);
    sum += interpret((const unsigned char *)"\0\5\0\6\1\0\7\1\2");
    sum += nobody_defines_this ? nobody_defines_this(1) : 1000;
    sum += &nobody_has_this_either ? 1 : 2000;
    sum += may_be_overridden();
    sum += fprintf(stderr, "%s", "");
    sum += stdout != NULL && fflush(stdout) == 0;
    memset(zeros, 0, sizeof zeros);
    memset(common_or_not, 0, sizeof common_or_not);
    return sum;
}

#ifdef WITH_MAIN
int main(void) {
    printf("%ld\n", check());
    return 0;
}
#endif
