#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cstdint>
#include <thread>
#include <utility>

namespace trunkline::engine {

/// The system's monotonic clock in nanoseconds; see `Clock` for that of an engine.
inline std::int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Sleep until a time on the same clock.
inline void sleep_until(std::int64_t due_ns) {
    const timespec due{static_cast<time_t>(due_ns / 1'000'000'000),
                       static_cast<long>(due_ns % 1'000'000'000)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
}

/// Start a named thread that takes no signals; those belong to the interpreter's main thread.
template <typename Body>
std::thread start_thread(const char* name, Body body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace trunkline::engine
