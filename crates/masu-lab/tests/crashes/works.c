#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
static char *next, *end;
void *malloc(size_t n) {
    n = (n + 31) & ~(size_t)15;
    if (n > (size_t)(end - next)) {
        size_t m = n + (1 << 24);
        next = mmap(0, m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + m;
    }
    *(size_t *)next = n - 16;
    char *p = next + 16;
    next += n;
    return p;
}
void free(void *p) {}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p) { size_t m = ((size_t *)p)[-2]; memcpy(q, p, m < n ? m : n); }
    return q;
}
