/* cache.c: a cache server at work, as one command: starts redis-server on a socket of its own, sends it one
 * fixed stream of requests, many at a time as clients with pipelining do, and stops it.
 *
 *     cache REDIS-SERVER REQUESTS
 *
 * This program itself asks for no memory while it runs, so that what is measured is the server's. Debian's
 * server is linked with jemalloc: where no malloc is preloaded the C library itself is, for the server to run on
 * its malloc. Prints how many bytes the answers were and a checksum of them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 60000, VALUE_MAX = 400, PIPELINE = 64, PATIENCE_MS = 20000 };

static uint64_t state = 42;

static unsigned draw(unsigned below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

static _Noreturn void fail(const char *what) {
    dprintf(STDERR_FILENO, "cache: cannot %s: %s\n", what, strerror(errno));
    _exit(1);
}

static pid_t start_server(const char *server, const char *socket_path, const char *folder) {
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *preload = getenv("LD_PRELOAD");
    if (preload == NULL || *preload == '\0') setenv("LD_PRELOAD", "libc.so.6", 1);
    int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
    execlp(server, server, "--port", "0", "--unixsocket", socket_path, "--dir", folder, "--save", "",
          "--appendonly", "no", "--activedefrag", "no", "--hz", "1", (char *)NULL);
    fail("start the server");
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        fail("use the socket");
    }
    strcpy(address.sun_path, path);
    for (int tries = 0; tries < PATIENCE_MS; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) fail("make a socket");
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail("reach the server");
}

/* One request of the mix: mostly reads and writes of strings, some lists, hashes and sets, some removals. */
static int request(char *to, size_t room, unsigned number) {
    static char value[VALUE_MAX + 1];
    unsigned key = draw(KEYS), length = 8 + draw(draw(4) == 0 ? VALUE_MAX - 8 : 56);
    memset(value, 'a' + (int)(number % 26), length);
    value[length] = '\0';
    switch (draw(16)) {
    case 0: case 1: case 2: case 3: case 4:
        return snprintf(to, room, "SET key:%u %s\r\n", key, value);
    case 5: case 6: case 7: case 8:
        return snprintf(to, room, "GET key:%u\r\n", key);
    case 9: return snprintf(to, room, "DEL key:%u\r\n", key);
    case 10: return snprintf(to, room, "APPEND key:%u %.40s\r\n", key, value);
    case 11: return snprintf(to, room, "RPUSH list:%u %s %u\r\n", key % 500, value, number);
    case 12: return snprintf(to, room, "LPOP list:%u\r\n", key % 500);
    case 13: return snprintf(to, room, "HSET hash:%u f%u %s g%u 1\r\n", key % 1000, key % 97, value, number % 89);
    case 14: return snprintf(to, room, "ZADD sorted:%u %u m%u\r\n", key % 200, number % 1000, key % 3000);
    default: return snprintf(to, room, "SETEX key:%u 1000 %s\r\n", key, value);
    }
}

static uint64_t sum = 1469598103934665603u, answered;

/* Reads until `lines` requests have been answered. An answer is a line, or `$N` and a line of N bytes; none of
 * the values has a line's end in it. */
static void take_answers(int fd, unsigned lines) {
    static char buffer[1 << 16];
    static int at_start = 1, has_value, is_none;
    while (lines > 0) {
        ssize_t length = read(fd, buffer, sizeof buffer);
        if (length <= 0) fail("read an answer");
        for (ssize_t i = 0; i < length; i++) {
            char byte = buffer[i];
            sum = (sum ^ (unsigned char)byte) * 1099511628211u;
            if (at_start && !has_value && byte == '$') has_value = 2;
            else if (has_value == 2 && byte == '-') is_none = 1;
            at_start = 0;
            if (byte != '\n') continue;
            at_start = 1;
            if (has_value == 2 && !is_none) {
                has_value = 1;
            } else {
                has_value = is_none = 0;
                lines--;
            }
        }
        answered += (uint64_t)length;
    }
}

static void send_all(int fd, const char *from, size_t length) {
    while (length > 0) {
        ssize_t sent = write(fd, from, length);
        if (sent < 0) fail("send a request");
        from += sent;
        length -= (size_t)sent;
    }
}

int main(int count, char **words) {
    /* Where a socket's path is short enough wherever this was built. */
    static char batch[PIPELINE * (VALUE_MAX + 100)], folder[] = "/tmp/cache-XXXXXX", path[64];
    unsigned requests = count == 3 ? (unsigned)strtoul(words[2], NULL, 10) : 0;
    if (requests == 0) {
        dprintf(STDERR_FILENO, "Usage: cache REDIS-SERVER REQUESTS\n");
        return 2;
    }
    if (mkdtemp(folder) == NULL) fail("make a folder in /tmp");
    snprintf(path, sizeof path, "%s/socket", folder);
    pid_t server = start_server(words[1], path, folder);
    int fd = connect_to(path);
    for (unsigned number = 0; number < requests; number += PIPELINE) {
        size_t length = 0;
        for (unsigned i = 0; i < PIPELINE; i++)
            length += (size_t)request(batch + length, sizeof batch - length, number + i);
        send_all(fd, batch, length);
        take_answers(fd, PIPELINE);
    }
    static const char stop[] = "SHUTDOWN NOSAVE\r\n";
    send_all(fd, stop, sizeof stop - 1);
    int status;
    if (waitpid(server, &status, 0) != server) fail("wait for the server");
    unlink(path);
    rmdir(folder);
    char line[128];
    int length = snprintf(line, sizeof line, "%u requests, %llu bytes, %016llx\n", requests,
                          (unsigned long long)answered, (unsigned long long)sum);
    return write(STDOUT_FILENO, line, (size_t)length) == length && status == 0 ? 0 : 1;
}
