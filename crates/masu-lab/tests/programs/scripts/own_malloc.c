#include <stdlib.h>
static char heap[100000], *next = heap;
void *malloc(size_t n) { return (next += n + 64) - n - n % 16; }
void free(void *block) { (void)block; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *block, size_t n) { (void)block; return malloc(n); }
int main(void) { return !malloc(9); }
