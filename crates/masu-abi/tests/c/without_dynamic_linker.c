/* Linked with libmasu.a, statically where the test says so: malloc is ours without any preload,
 * and what a static program lacks is not missed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void malloc_stats(void);

static void *thread(void *argument)
{
    char *blocks[300];
    for (int i = 0; i < 300; i++) {
        blocks[i] = malloc((size_t)i * 10 + 1);
        memset(blocks[i], i, (size_t)i * 10 + 1);
    }
    for (int i = 0; i < 299; i++)
        free(blocks[i]);
    *(char **)argument = blocks[299];
    return argument;
}

int main(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_t id;
        char *left = NULL;
        if (pthread_create(&id, NULL, thread, &left) != 0 || pthread_join(id, NULL) != 0)
            return 1;
        left = realloc(left, 100000);
        if (!left || left[2990] != (char)299)
            return 2;
        free(left);
    }
    /* Says who serves. */
    malloc_stats();
    return 0;
}
