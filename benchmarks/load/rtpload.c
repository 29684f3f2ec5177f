/*
 * rtpload: RTP load for the benchmarks; one thread, no dependencies, Linux.
 *
 *   rtpload send  --listen PORT --seconds S --targets PORT,PORT,... [--quiet S] [--talk S --pause S] [--windows N]
 *   rtpload echo  --listen PORT
 *   rtpload relay --near BASE --far BASE --sink PORT --calls N
 *
 * send   One socket sends 50 packets a second of G.711 mu-law to every target and reads what comes back to it; the
 *        source port of a returned packet says which call it belongs to. Each payload carries its send time, so the
 *        round trip is measured on one clock. Packets are spread evenly over the 20 ms. Silence comes first for as
 *        long as --quiet says, as before the first word of a call. With --talk and --pause each call then talks for so
 *        long and is silent for so long in turn; what is silent is not counted, as it may be left out. The seconds are divided into windows: each is told
 *        on standard error once its last packets have had their time to return.
 * echo   Sends every packet back to where it came from, with another SSRC, as a far end of its own would have.
 * relay  The floor: call i relays between near port BASE+2i, which learns its peer, and far port BASE+2i, which
 *        sends to --sink PORT; nothing but recvmmsg and sendmmsg. What this costs, the kernel costs.
 *
 * Everything is on 127.0.0.1. A subcommand ends on SIGTERM or when its seconds are over, and prints one JSON object.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    RTP_HEADER = 12,
    PAYLOAD = 160,
    PACKET = RTP_HEADER + PAYLOAD,
    BATCH = 64,
    MAX_CALLS = 4000,
    PTIME_US = 20000,
    RTT_BUCKETS = 100000, /* of 10 us each: up to one second */
    MARK_NIBBLES = 24,    /* 16 of time, 8 of sequence */
};

/* The mark: a sync word no nibble can make, then nibbles as 0x40..0x4f. Every mu-law byte but 0x7f survives
 * decoding to linear and back, so the mark passes through servers that decode. */
static const uint8_t SYNC[4] = {0x21, 0x37, 0x5e, 0x11};

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static void die(const char *what) {
    perror(what);
    exit(2);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct sockaddr_in address(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int open_socket(uint16_t port) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0) die("socket");
    int size = 8 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    struct sockaddr_in a = address(port);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) die("bind");
    return fd;
}

static void put_mark(uint8_t *at, uint64_t time, uint32_t sequence) {
    memcpy(at, SYNC, sizeof SYNC);
    for (int i = 0; i < 16; i++) at[4 + i] = (uint8_t)(0x40 | (time >> (60 - 4 * i) & 0xf));
    for (int i = 0; i < 8; i++) at[20 + i] = (uint8_t)(0x40 | (sequence >> (28 - 4 * i) & 0xf));
}

static bool get_mark(const uint8_t *payload, size_t size, uint64_t *time, uint32_t *sequence) {
    const size_t need = sizeof SYNC + MARK_NIBBLES;
    for (size_t at = 0; at + need <= size; at++) {
        if (payload[at] != SYNC[0] || memcmp(payload + at, SYNC, sizeof SYNC) != 0) continue;
        *time = 0;
        *sequence = 0;
        for (int i = 0; i < 16; i++) *time = *time << 4 | (payload[at + 4 + (size_t)i] & 0xf);
        for (int i = 0; i < 8; i++) *sequence = *sequence << 4 | (payload[at + 20 + (size_t)i] & 0xf);
        return true;
    }
    return false;
}

/* A batch of packets for recvmmsg and sendmmsg. */
struct batch {
    struct mmsghdr headers[BATCH];
    struct iovec vectors[BATCH];
    struct sockaddr_in addresses[BATCH];
    uint8_t data[BATCH][2048];
};

static void prepare(struct batch *b) {
    for (int i = 0; i < BATCH; i++) {
        b->vectors[i] = (struct iovec){b->data[i], sizeof b->data[i]};
        b->headers[i].msg_hdr = (struct msghdr){
            .msg_name = &b->addresses[i], .msg_namelen = sizeof b->addresses[i], .msg_iov = &b->vectors[i], .msg_iovlen = 1};
    }
}

static int receive(int fd, struct batch *b) {
    for (int i = 0; i < BATCH; i++) {
        b->vectors[i].iov_len = sizeof b->data[i];
        b->headers[i].msg_hdr.msg_namelen = sizeof b->addresses[i];
    }
    int count = recvmmsg(fd, b->headers, BATCH, MSG_DONTWAIT, NULL);
    if (count < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) die("recvmmsg");
    for (int i = 0; i < count; i++) b->vectors[i].iov_len = b->headers[i].msg_len;
    return count < 0 ? 0 : count;
}

static int transmit(int fd, struct batch *b, int count) {
    int sent = 0;
    while (sent < count) {
        int n = sendmmsg(fd, b->headers + sent, (unsigned)(count - sent), 0);
        /* One refused packet must not hold the others up: the peer of an ended call is gone. */
        if (n < 0 && errno != EINTR) n = 1;
        if (n > 0) sent += n;
    }
    return sent;
}

/* send */

struct call {
    uint16_t port;
    uint16_t sequence;
    uint32_t sent, received, highest;
    uint64_t seen_ns;
};

/* Packets by the time they were sent at, and their round trips. */
struct window {
    uint64_t sent, received;
    double rtt_sum_ms;
    uint32_t rtt[RTT_BUCKETS];
};

struct sender {
    int fd, calls;
    struct call call[MAX_CALLS];
    int16_t by_port[65536];
    uint64_t received, unmarked, foreign, duplicates, late_ns_max;
    uint64_t marked_ns;         /* silence until then */
    uint64_t talk_ns, pause_ns; /* then in turn, each call at its own time; no pauses if the first is 0 */
    uint64_t from_ns, until_ns; /* what counts: the windows, one after the other */
    struct window *windows, total;
    int count, told;
};

static struct window *window_of(struct sender *s, uint64_t sent_ns) {
    if (sent_ns < s->from_ns || sent_ns >= s->until_ns) return NULL;
    return &s->windows[(sent_ns - s->from_ns) * (uint64_t)s->count / (s->until_ns - s->from_ns)];
}

static bool speaks(const struct sender *s, int call, uint64_t now) {
    if (now < s->marked_ns) return false;
    if (s->talk_ns == 0) return true;
    uint64_t turn = s->talk_ns + s->pause_ns;
    return (now - s->marked_ns + turn * (uint64_t)call / (uint64_t)s->calls) % turn < s->talk_ns;
}

static void send_due(struct sender *s, struct batch *b, int first, int count) {
    int filled = 0;
    for (int i = first; i < first + count; i++) {
        struct call *c = &s->call[i];
        uint8_t *p = b->data[filled];
        uint64_t now = now_ns();
        memset(p, 0xff, PACKET);
        uint32_t timestamp = htonl(c->sent * PAYLOAD), ssrc = htonl(0x10000u + (uint32_t)i);
        uint16_t sequence = htons(c->sequence);
        p[0] = 0x80;
        p[1] = 0;
        memcpy(p + 2, &sequence, 2);
        memcpy(p + 4, &timestamp, 4);
        memcpy(p + 8, &ssrc, 4);
        bool marked = speaks(s, i, now);
        for (int at = RTP_HEADER; marked && at + 32 <= PACKET; at += 32) put_mark(p + at, now, c->sent);
        b->vectors[filled].iov_len = PACKET;
        b->addresses[filled] = address(c->port);
        struct window *window = window_of(s, now);
        if (window != NULL && marked) window->sent++;
        c->sequence++;
        c->sent++;
        if (++filled == BATCH || i + 1 == first + count) {
            transmit(s->fd, b, filled);
            filled = 0;
        }
    }
}

static void take(struct sender *s, const uint8_t *packet, size_t size, uint16_t port, uint64_t now) {
    int index = s->by_port[port];
    if (index < 0 || size < RTP_HEADER) {
        s->foreign++;
        return;
    }
    struct call *c = &s->call[index];
    uint64_t sent_ns;
    uint32_t sequence;
    s->received++;
    c->seen_ns = now;
    if (!get_mark(packet + RTP_HEADER, size - RTP_HEADER, &sent_ns, &sequence)) {
        if (c->received > 0) s->unmarked++;
        return;
    }
    if (c->received > 0 && sequence == c->highest) s->duplicates++;
    if (sequence > c->highest) c->highest = sequence;
    c->received++;
    struct window *window = window_of(s, sent_ns);
    if (window == NULL || now < sent_ns) return;
    uint64_t bucket = (now - sent_ns) / 10000;
    window->rtt[bucket < RTT_BUCKETS ? bucket : RTT_BUCKETS - 1]++;
    window->rtt_sum_ms += (double)(now - sent_ns) / 1e6;
    window->received++;
}

static void drain(struct sender *s, struct batch *b) {
    int count;
    while ((count = receive(s->fd, b)) > 0) {
        uint64_t now = now_ns();
        for (int i = 0; i < count; i++)
            take(s, b->data[i], b->vectors[i].iov_len, ntohs(b->addresses[i].sin_port), now);
        if (count < BATCH) break;
    }
}

static double percentile(const struct window *w, double share) {
    uint64_t target = (uint64_t)((double)w->received * share), seen = 0;
    for (int i = 0; i < RTT_BUCKETS; i++) {
        seen += w->rtt[i];
        if (seen > target) return (i + 0.5) * 0.01;
    }
    return 0;
}

/* The fields of a window, without braces. */
static void print_window(FILE *to, const struct window *w) {
    double loss = w->sent == 0 ? 0 : 100.0 * (double)(w->sent - w->received) / (double)w->sent;
    fprintf(to, "\"sent\": %llu, \"returned\": %llu, \"loss_pct\": %.4f, ", (unsigned long long)w->sent,
            (unsigned long long)w->received, loss);
    fprintf(to, "\"rtt_ms\": {\"mean\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f}",
            w->received ? w->rtt_sum_ms / (double)w->received : 0, percentile(w, 0.5), percentile(w, 0.99),
            percentile(w, 0.999));
}

/* Tell the windows that ended before a time. */
static void tell_windows(struct sender *s, uint64_t before_ns) {
    while (s->told < s->count) {
        uint64_t length = (s->until_ns - s->from_ns) / (uint64_t)s->count;
        if (s->from_ns + (uint64_t)(s->told + 1) * length > before_ns) return;
        const struct window *w = &s->windows[s->told++];
        fprintf(stderr, "window {");
        print_window(stderr, w);
        fprintf(stderr, "}\n");
        s->total.sent += w->sent;
        s->total.received += w->received;
        s->total.rtt_sum_ms += w->rtt_sum_ms;
        for (int i = 0; i < RTT_BUCKETS; i++) s->total.rtt[i] += w->rtt[i];
    }
}

static void report(const struct sender *s) {
    int silent = 0;
    for (int i = 0; i < s->calls; i++) silent += s->call[i].received == 0;
    printf("{\"calls\": %d, \"silent_calls\": %d, ", s->calls, silent);
    print_window(stdout, &s->total);
    printf(", \"unmarked\": %llu, \"foreign\": %llu, \"duplicates\": %llu, ", (unsigned long long)s->unmarked,
           (unsigned long long)s->foreign, (unsigned long long)s->duplicates);
    printf("\"tool_late_ms_max\": %.3f, \"tool_cpu_s\": %.2f}\n", (double)s->late_ns_max / 1e6, cpu_s());
}

static void wait_for(int epoll, uint64_t until_ns) {
    uint64_t now = now_ns();
    struct timespec left = {0, until_ns > now ? (long)(until_ns - now) : 0};
    struct epoll_event event;
    epoll_pwait2(epoll, &event, 1, &left, NULL);
}

static int run_send(uint16_t port, double quiet_s, double talk_s, double pause_s, double seconds, int windows,
                    char *targets) {
    struct sender *s = calloc(1, sizeof *s);
    struct batch *out = calloc(1, sizeof *out), *in = calloc(1, sizeof *in);
    if (s == NULL || out == NULL || in == NULL) die("calloc");
    s->count = windows;
    s->talk_ns = (uint64_t)(talk_s * 1e9);
    s->pause_ns = (uint64_t)(pause_s * 1e9);
    s->windows = calloc((size_t)windows, sizeof *s->windows);
    if (s->windows == NULL) die("calloc");
    prepare(out);
    prepare(in);
    memset(s->by_port, 0xff, sizeof s->by_port);
    s->fd = open_socket(port);
    for (char *word = strtok(targets, ","); word != NULL && s->calls < MAX_CALLS; word = strtok(NULL, ",")) {
        s->call[s->calls].port = (uint16_t)atoi(word);
        s->by_port[s->call[s->calls].port] = (int16_t)s->calls;
        s->calls++;
    }
    int epoll = epoll_create1(0);
    struct epoll_event want = {.events = EPOLLIN};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &want) < 0) die("epoll");
    const uint64_t return_ns = 2000000000u; /* an agent's answers come back late, and must not count as lost for it */
    /* The first marked second lets every server port learn its peer and every buffer fill; it is not counted. */
    uint64_t start = now_ns();
    s->marked_ns = start + (uint64_t)(quiet_s * 1e9);
    s->from_ns = s->marked_ns + 1000000000u;
    s->until_ns = s->from_ns + (uint64_t)(seconds * 1e9);
    fprintf(stderr, "steady-begin-in %.1f\n", quiet_s + 1.0);
    bool announced = false;
    /* Slots of a quarter millisecond, so that the calls do not all send at once. */
    enum { SLOTS = 80, SLOT_NS = PTIME_US * 1000 / SLOTS };
    for (uint64_t slot = 0; !stopped; slot++) {
        uint64_t due = start + slot * SLOT_NS;
        while (now_ns() < due) {
            wait_for(epoll, due);
            drain(s, in);
        }
        uint64_t now = now_ns();
        if (!announced && now >= s->from_ns) {
            fprintf(stderr, "steady-begin\n");
            announced = true;
        }
        if (now >= s->until_ns) break;
        if (now >= s->from_ns && now - due > s->late_ns_max) s->late_ns_max = now - due;
        int at = (int)(slot % SLOTS);
        int first = s->calls * at / SLOTS, next = s->calls * (at + 1) / SLOTS;
        if (next > first) send_due(s, out, first, next - first);
        drain(s, in);
        if (s->told + 1 < s->count) tell_windows(s, now - return_ns);
    }
    fprintf(stderr, "steady-end\n");
    for (uint64_t end = now_ns() + return_ns; now_ns() < end;) {
        wait_for(epoll, now_ns() + 20000000u);
        drain(s, in);
    }
    tell_windows(s, UINT64_MAX);
    report(s);
    return 0;
}

/* echo */

static int run_echo(uint16_t port) {
    struct batch *b = calloc(1, sizeof *b);
    if (b == NULL) die("calloc");
    prepare(b);
    int fd = open_socket(port);
    int epoll = epoll_create1(0);
    struct epoll_event want = {.events = EPOLLIN};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want) < 0) die("epoll");
    uint64_t packets = 0;
    while (!stopped) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, 500) <= 0) continue;
        for (int count; (count = receive(fd, b)) > 0;) {
            for (int i = 0; i < count; i++) b->data[i][8] ^= 0x80;
            packets += (uint64_t)transmit(fd, b, count);
        }
    }
    printf("{\"packets\": %llu, \"tool_cpu_s\": %.2f}\n", (unsigned long long)packets, cpu_s());
    return 0;
}

/* relay */

struct relay {
    int near, far;
    struct sockaddr_in peer;
    bool known;
};

static uint64_t from_near(struct relay *r, struct batch *b, const struct sockaddr_in *sink) {
    int count = receive(r->near, b);
    if (count == 0) return 0;
    r->peer = b->addresses[0];
    r->known = true;
    for (int i = 0; i < count; i++) b->addresses[i] = *sink;
    return (uint64_t)transmit(r->far, b, count);
}

static uint64_t from_far(struct relay *r, struct batch *b) {
    int count = receive(r->far, b);
    if (!r->known) return 0;
    for (int i = 0; i < count; i++) b->addresses[i] = r->peer;
    return (uint64_t)transmit(r->near, b, count);
}

static int run_relay(uint16_t near, uint16_t far, uint16_t sink, int calls) {
    struct relay *relays = calloc((size_t)calls, sizeof *relays);
    struct batch *b = calloc(1, sizeof *b);
    if (relays == NULL || b == NULL) die("calloc");
    prepare(b);
    int epoll = epoll_create1(0);
    for (int i = 0; i < calls; i++) {
        relays[i] = (struct relay){.near = open_socket((uint16_t)(near + 2 * i)), .far = open_socket((uint16_t)(far + 2 * i))};
        struct epoll_event near_event = {.events = EPOLLIN, .data.u32 = (uint32_t)i << 1};
        struct epoll_event far_event = {.events = EPOLLIN, .data.u32 = (uint32_t)i << 1 | 1};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, relays[i].near, &near_event) < 0) die("epoll");
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, relays[i].far, &far_event) < 0) die("epoll");
    }
    struct sockaddr_in echo = address(sink);
    uint64_t packets = 0, wakeups = 0;
    while (!stopped) {
        struct epoll_event events[256];
        int count = epoll_wait(epoll, events, 256, 500);
        wakeups += count > 0;
        for (int i = 0; i < count; i++) {
            struct relay *r = &relays[events[i].data.u32 >> 1];
            packets += events[i].data.u32 & 1 ? from_far(r, b) : from_near(r, b, &echo);
        }
    }
    printf("{\"packets\": %llu, \"wakeups\": %llu, \"tool_cpu_s\": %.2f}\n", (unsigned long long)packets,
           (unsigned long long)wakeups, cpu_s());
    return 0;
}

static char *option_or(int argc, char **argv, const char *name, char *otherwise) {
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return otherwise;
}

static char *option(int argc, char **argv, const char *name) {
    char *value = option_or(argc, argv, name, NULL);
    if (value != NULL) return value;
    fprintf(stderr, "rtpload %s needs %s\n", argv[1], name);
    exit(2);
}

int main(int argc, char **argv) {
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "send") == 0)
        return run_send((uint16_t)atoi(option(argc, argv, "--listen")), atof(option_or(argc, argv, "--quiet", "0")),
                        atof(option_or(argc, argv, "--talk", "0")), atof(option_or(argc, argv, "--pause", "0")),
                        atof(option(argc, argv, "--seconds")), atoi(option_or(argc, argv, "--windows", "1")),
                        option(argc, argv, "--targets"));
    if (strcmp(mode, "echo") == 0) return run_echo((uint16_t)atoi(option(argc, argv, "--listen")));
    if (strcmp(mode, "relay") == 0)
        return run_relay((uint16_t)atoi(option(argc, argv, "--near")), (uint16_t)atoi(option(argc, argv, "--far")),
                         (uint16_t)atoi(option(argc, argv, "--sink")), atoi(option(argc, argv, "--calls")));
    fprintf(stderr, "usage: rtpload send|echo|relay ...; see the head of rtpload.c\n");
    return 2;
}
