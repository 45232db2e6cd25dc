#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
extern void *__libc_malloc(size_t);
static unsigned long *page;
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("MASU_COUNT_FILE");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0) return;
    page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    __atomic_add_fetch(&page[2], 1, __ATOMIC_RELAXED);
}
void *malloc(size_t size) {
    if (page) __atomic_add_fetch(&page[3], 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}
