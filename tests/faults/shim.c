// Preloaded into a server under test: delays or fails what it writes, and moves its wall clock.
//
// The file named by FAULT_SHIM is mapped and read at every call, so a test changes it while the server runs:
// which paths (a substring) meet which error or delay, and how far the clock is off.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    int32_t write_errno;   // What writing to the path answers; 0 lets it through.
    int32_t sync_delay_ms; // How long syncing it takes.
    int32_t write_delay_ms;
    int32_t reserved;
    int64_t clock_offset_s;
    char path[232];  // Part of the paths this is for; empty for none.
};

static const struct control* control;

__attribute__((constructor)) static void begin(void) {
    const char* name = getenv("FAULT_SHIM");
    if (name == NULL) return;
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void* mapped = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) control = mapped;
}

static void* real(const char* name) {
    return dlsym(RTLD_NEXT, name);
}

static int meant(int file) {
    if (control == NULL || control->path[0] == '\0') return 0;
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return strstr(path, control->path) != NULL;
}

static void wait_ms(int32_t delay_ms) {
    struct timespec rest = {delay_ms / 1000, delay_ms % 1000 * 1000000L};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

// Whether a write to the file fails; errno is set then.
static int refused(int file) {
    if (!meant(file)) return 0;
    if (control->write_delay_ms > 0) wait_ms(control->write_delay_ms);
    if (control->write_errno == 0) return 0;
    errno = control->write_errno;
    return 1;
}

static int synced(int file, const char* name) {
    static int (*calls[2])(int);
    const int data = strcmp(name, "fdatasync") == 0;
    if (calls[data] == NULL) calls[data] = (int (*)(int))real(name);
    if (meant(file) && control->sync_delay_ms > 0) wait_ms(control->sync_delay_ms);
    return calls[data](file);
}

int fsync(int file) {
    return synced(file, "fsync");
}

int fdatasync(int file) {
    return synced(file, "fdatasync");
}

ssize_t write(int file, const void* bytes, size_t count) {
    static ssize_t (*next)(int, const void*, size_t);
    if (next == NULL) next = (ssize_t(*)(int, const void*, size_t))real("write");
    return refused(file) ? -1 : next(file, bytes, count);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
    static ssize_t (*next)(int, const void*, size_t, off_t);
    if (next == NULL) next = (ssize_t(*)(int, const void*, size_t, off_t))real("pwrite");
    return refused(file) ? -1 : next(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, const void*, size_t, off64_t);
    if (next == NULL) next = (ssize_t(*)(int, const void*, size_t, off64_t))real("pwrite64");
    return refused(file) ? -1 : next(file, bytes, count, offset);
}

// --- the wall clock; the monotonic one is left alone, as a step of the system's clock leaves it.

static int64_t off_s(void) {
    return control == NULL ? 0 : control->clock_offset_s;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
    static int (*next)(clockid_t, struct timespec*);
    if (next == NULL) next = (int (*)(clockid_t, struct timespec*))real("clock_gettime");
    const int result = next(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += off_s();
    return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* into) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (into != NULL) *into = at.tv_sec;
    return at.tv_sec;
}

// The kernel's stamps of datagrams are of the same clock.
ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
    static ssize_t (*next)(int, struct msghdr*, int);
    if (next == NULL) next = (ssize_t(*)(int, struct msghdr*, int))real("recvmsg");
    const ssize_t received = next(socket, message, flags);
    if (received < 0 || off_s() == 0) return received;
    for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
        stamp.tv_sec += off_s();
        memcpy(CMSG_DATA(part), &stamp, sizeof stamp);
    }
    return received;
}
