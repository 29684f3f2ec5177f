#include "trunkline/websocket/read_budget.hpp"

#include <algorithm>

namespace trunkline::websocket {

namespace {

/// Nanoseconds in which the budget regains a byte.
constexpr double ns_per_byte =
    static_cast<double>(ReadBudget::burst_ns) / static_cast<double>(ReadBudget::burst_bytes);

std::int64_t bytes_in(std::int64_t ns) {
    return static_cast<std::int64_t>(static_cast<double>(ns) / ns_per_byte);
}

}  // namespace

void ReadBudget::read(std::size_t size_bytes, std::int64_t now_ns) {
    take(static_cast<std::int64_t>(size_bytes) + frame_bytes, now_ns);
}

void ReadBudget::work(std::size_t size_bytes, std::int64_t now_ns) {
    take(static_cast<std::int64_t>(size_bytes), now_ns);
}

void ReadBudget::records(std::size_t count, std::int64_t now_ns) {
    take(static_cast<std::int64_t>(count) * record_bytes, now_ns);
}

void ReadBudget::spent(std::int64_t spent_ns, std::int64_t now_ns) {
    take(bytes_in(spent_ns * long_share), now_ns);
}

void ReadBudget::take(std::int64_t bytes, std::int64_t now_ns) {
    if (stopped_) return;
    if (since_ns_ == never_ns) since_ns_ = now_ns;
    left_bytes_ -= bytes;
    if (left_bytes_ >= 0 || paused_) return;
    left_bytes_ = std::min(burst_bytes, left_bytes_ + bytes_in(now_ns - since_ns_));
    since_ns_ = now_ns;
    paused_ = left_bytes_ < 0;
    resume_ns_ = now_ns + burst_ns;
}

bool ReadBudget::resume(std::int64_t now_ns) {
    if (!paused_ || now_ns < resume_ns_) return false;
    const auto owed_ns = static_cast<std::int64_t>(static_cast<double>(-left_bytes_) * ns_per_byte);
    if (owed_ns > burst_ns) {
        // A large message, or long work, exceeded the budget further.
        resume_ns_ = now_ns + std::min(owed_ns, max_pause_ns);
        left_bytes_ = 0;
        return false;
    }
    refill(now_ns);
    return true;
}

void ReadBudget::stop() {
    stopped_ = true;
    paused_ = false;
}

void ReadBudget::refill(std::int64_t now_ns) {
    paused_ = false;
    left_bytes_ = burst_bytes;
    since_ns_ = now_ns;
}

}  // namespace trunkline::websocket
