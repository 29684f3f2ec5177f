/*
 * agent_bridge: what agent streams cost when one native thread speaks both RTP and WebSocket; Linux, no dependencies.
 *
 *   agent_bridge --near BASE --agent PORT --calls N [--grid-us US]
 *
 * Call i takes G.711 mu-law on UDP port BASE+2i, learns its peer from the first packet, and sends each packet as a
 * masked text frame of JSON with base64 L16 to a WebSocket agent; each frame that comes back becomes an RTP packet at
 * once. No jitter buffer, no playout clock, no TLS, no control frames: less than a server must do, so that the figure
 * is a floor for an engine that would speak WebSocket itself.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RTP_HEADER = 12, SAMPLES = 160, MAX_CALLS = 4000, INBOX = 8192 };

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static int8_t values[256];
static int16_t linear[256];

struct call {
    int rtp, agent;
    struct sockaddr_in peer;
    uint32_t number, ssrc;
    size_t held;
    uint8_t inbox[INBOX];
};

static struct call *calls;
static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static void die(const char *what) {
    perror(what);
    exit(2);
}

static struct sockaddr_in address(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void make_tables(void) {
    memset(values, -1, sizeof values);
    for (int n = 0; n < 64; n++) values[(uint8_t)ALPHABET[n]] = (int8_t)n;
    for (int code = 0; code < 256; code++) {
        int bits = ~code & 0xff;
        int magnitude = ((((bits & 15) << 3) + 132) << (bits >> 4 & 7)) - 132;
        linear[code] = (int16_t)(bits & 0x80 ? -magnitude : magnitude);
    }
}

static uint8_t mulaw(int sample) {
    int sign = sample < 0 ? 0x80 : 0, magnitude = (sample < 0 ? -sample : sample) + 132, segment = 7;
    if (magnitude > 32767) magnitude = 32767;
    for (int mask = 0x4000; !(magnitude & mask) && segment > 0; mask >>= 1) segment--;
    return (uint8_t)~(sign | segment << 4 | (magnitude >> (segment + 3) & 15));
}

static size_t to_base64(const uint8_t *in, size_t size, char *out) {
    char *start = out;
    for (; size >= 3; size -= 3, in += 3) {
        uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *out++ = ALPHABET[v >> 18];
        *out++ = ALPHABET[v >> 12 & 63];
        *out++ = ALPHABET[v >> 6 & 63];
        *out++ = ALPHABET[v & 63];
    }
    if (size) {
        uint32_t v = (uint32_t)in[0] << 16 | (size > 1 ? (uint32_t)in[1] << 8 : 0);
        *out++ = ALPHABET[v >> 18];
        *out++ = ALPHABET[v >> 12 & 63];
        *out++ = size > 1 ? ALPHABET[v >> 6 & 63] : '=';
        *out++ = '=';
    }
    return (size_t)(out - start);
}

static size_t from_base64(const char *in, size_t size, uint8_t *out, size_t room) {
    size_t made = 0;
    uint32_t v = 0;
    int bits = 0;
    for (size_t n = 0; n < size && values[(uint8_t)in[n]] >= 0; n++) {
        v = v << 6 | (uint32_t)values[(uint8_t)in[n]];
        bits += 6;
        if (bits >= 8 && made < room) out[made++] = (uint8_t)(v >> (bits -= 8));
    }
    return made;
}

static void send_text(struct call *call, const char *text, size_t size) {
    static const uint8_t key[4] = {0x5a, 0xc3, 0x17, 0xe9};
    uint8_t frame[2048] = {0x81, 0x80 | 126, (uint8_t)(size >> 8), (uint8_t)size, key[0], key[1], key[2], key[3]};
    for (size_t n = 0; n < size; n++) frame[8 + n] = (uint8_t)text[n] ^ key[n & 3];
    (void)!send(call->agent, frame, 8 + size, MSG_NOSIGNAL);
}

static void take_rtp(struct call *call) {
    uint8_t packet[2048];
    for (;;) {
        socklen_t length = sizeof call->peer;
        ssize_t size = recvfrom(call->rtp, packet, sizeof packet, 0, (struct sockaddr *)&call->peer, &length);
        if (size < 0) return;
        if (size != RTP_HEADER + SAMPLES) continue;
        int16_t pcm[SAMPLES];
        for (int n = 0; n < SAMPLES; n++) pcm[n] = linear[packet[RTP_HEADER + n]];
        char text[1024];
        call->number++;
        int head = sprintf(text,
                           "{\"event\":\"media\",\"sequence_number\":\"%u\",\"stream_sid\":\"MZ0123456789abcdef\","
                           "\"media\":{\"chunk\":\"%u\",\"timestamp\":\"%u\",\"payload\":\"",
                           call->number, call->number, call->number * 20);
        size_t end = (size_t)head + to_base64((const uint8_t *)pcm, sizeof pcm, text + head);
        memcpy(text + end, "\"}}", 3);
        send_text(call, text, end + 3);
    }
}

static void send_rtp(struct call *call, const char *text, size_t size) {
    const char *found = memmem(text, size, "\"payload\":\"", 11);
    if (found == NULL || call->peer.sin_port == 0) return;
    uint8_t pcm[2 * SAMPLES], packet[RTP_HEADER + SAMPLES] = {0x80, 0};
    found += 11;
    size_t samples = from_base64(found, (size_t)(text + size - found), pcm, sizeof pcm) / 2;
    static uint16_t sequence;
    uint32_t stamp = htonl(++call->ssrc * SAMPLES);
    *(uint16_t *)(packet + 2) = htons(++sequence);
    memcpy(packet + 4, &stamp, 4);
    memcpy(packet + 8, &call->agent, 4);
    for (size_t n = 0; n < samples; n++) {
        int16_t sample;
        memcpy(&sample, pcm + 2 * n, 2);
        packet[RTP_HEADER + n] = mulaw(sample);
    }
    sendto(call->rtp, packet, RTP_HEADER + samples, 0, (struct sockaddr *)&call->peer, sizeof call->peer);
}

static void take_agent(struct call *call) {
    for (;;) {
        ssize_t size = recv(call->agent, call->inbox + call->held, INBOX - call->held, 0);
        if (size <= 0) return;
        call->held += (size_t)size;
        size_t at = 0;
        while (call->held - at >= 4) {
            size_t length = call->inbox[at + 1] & 127, head = 2;
            if (length == 126) {
                length = (size_t)call->inbox[at + 2] << 8 | call->inbox[at + 3];
                head = 4;
            }
            if (call->held - at < head + length) break;
            if ((call->inbox[at] & 15) == 1) send_rtp(call, (const char *)call->inbox + at + head, length);
            at += head + length;
        }
        memmove(call->inbox, call->inbox + at, call->held -= at);
    }
}

static void open_call(struct call *call, uint16_t near_port, uint16_t agent_port, int epoll, uint32_t index) {
    struct sockaddr_in a = address(near_port), to = address(agent_port);
    call->rtp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (call->rtp < 0 || bind(call->rtp, (struct sockaddr *)&a, sizeof a) != 0) die("bind");
    call->agent = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(call->agent, (struct sockaddr *)&to, sizeof to) != 0) die("connect");
    int on = 1;
    setsockopt(call->agent, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    static const char upgrade[] =
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    if (send(call->agent, upgrade, sizeof upgrade - 1, 0) < 0) die("send");
    char answer[2048];
    ssize_t size = 0;
    while (size < 4 || memcmp(answer + size - 4, "\r\n\r\n", 4) != 0) {
        if (recv(call->agent, answer + size, 1, 0) != 1 || ++size == sizeof answer) die("upgrade");
    }
    if (fcntl(call->agent, F_SETFL, O_NONBLOCK) != 0) die("fcntl");
    struct epoll_event rtp = {EPOLLIN | EPOLLET, {.u64 = 2 * index}}, agent = {EPOLLIN, {.u64 = 2 * index + 1}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, call->rtp, &rtp) || epoll_ctl(epoll, EPOLL_CTL_ADD, call->agent, &agent))
        die("epoll");
}

/* Sleep to the next multiple of the grid, so that what comes meanwhile is taken in one wake-up. */
static void wait_for_grid(unsigned grid_us) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now_us = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    uint64_t next_us = (now_us / grid_us + 1) * grid_us;
    t.tv_sec = (time_t)(next_us / 1000000u);
    t.tv_nsec = (long)(next_us % 1000000u) * 1000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int count, char **arguments) {
    unsigned near = 0, agent = 0, number = 0, grid_us = 0;
    for (int n = 1; n + 1 < count; n += 2) {
        unsigned value = (unsigned)strtoul(arguments[n + 1], NULL, 10);
        if (strcmp(arguments[n], "--near") == 0) near = value;
        if (strcmp(arguments[n], "--agent") == 0) agent = value;
        if (strcmp(arguments[n], "--calls") == 0) number = value;
        if (strcmp(arguments[n], "--grid-us") == 0) grid_us = value;
    }
    if (near == 0 || agent == 0 || number == 0 || number > MAX_CALLS) {
        fputs("usage: agent_bridge --near BASE --agent PORT --calls N [--grid-us US]\n", stderr);
        return 2;
    }
    signal(SIGTERM, on_signal);
    make_tables();
    calls = calloc(number, sizeof *calls);
    int epoll = epoll_create1(0);
    if (calls == NULL || epoll < 0) die("epoll_create1");
    for (unsigned n = 0; n < number; n++)
        open_call(&calls[n], (uint16_t)(near + 2 * n), (uint16_t)agent, epoll, n);
    puts("ready");
    fflush(stdout);
    struct epoll_event ready[256];
    while (!stopped) {
        if (grid_us != 0) wait_for_grid(grid_us);
        int found = epoll_wait(epoll, ready, 256, 1000);
        for (int n = 0; n < found; n++) {
            struct call *call = &calls[ready[n].data.u64 / 2];
            if (ready[n].data.u64 % 2) {
                take_agent(call);
            } else {
                take_rtp(call);
            }
        }
    }
    return 0;
}
