/* A thread that waits to the end, and one that writes in bursts with pauses in between, as a server does. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_for_nothing(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) pthread_cond_wait(&never, &lock);
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_nothing, NULL)) return 1;
    int null = open("/dev/null", O_WRONLY);
    for (int burst = 0; burst < atoi(words[count - 2]); burst++) {
        for (int i = 0; i < atoi(words[count - 1]); i++)
            if (write(null, "x", 1) != 1) return 1;
        usleep(1000);
    }
    return 0;
}
