#include "trunkline/engine/port_pool.hpp"

#include <limits>

namespace trunkline::engine {

PortPool::PortPool(std::uint16_t first, std::uint16_t last, std::int64_t quarantine_ns)
    : quarantine_ns_(quarantine_ns), first_((first + 1U) & ~1U) {
    for (std::uint32_t port = first_; port + 1 <= last; port += 2) {
        free_.push_back({static_cast<std::uint16_t>(port), std::numeric_limits<std::int64_t>::min()});
    }
    capacity_ = free_.size();
    taken_.resize(capacity_);
}

std::optional<std::uint16_t> PortPool::take(std::int64_t now_ns) {
    if (free_.empty() || free_.front().until_ns > now_ns) return std::nullopt;
    const std::uint16_t port = free_.front().port;
    free_.pop_front();
    taken_[(port - first_) / 2] = true;
    ++in_use_;
    return port;
}

void PortPool::give_back(std::uint16_t port, std::int64_t now_ns) {
    const std::size_t place = (port - first_) / 2;
    if (port < first_ || place >= capacity_ || port % 2 != 0 || !taken_[place]) return;
    taken_[place] = false;
    free_.push_back({port, now_ns + quarantine_ns_});
    --in_use_;
}

PortLease::~PortLease() {
    if (pool_ != nullptr) pool_->give_back(port_, clock_->now_ns());
}

}  // namespace trunkline::engine
