#include "trunkline/engine/latch.hpp"

namespace trunkline::engine {

void Latch::signal(const io::Address& remote) {
    if (remote == signalled_) return;
    signalled_ = remote;
    latched_ = false;
}

bool Latch::accept(const io::Address& source, std::int64_t now_ns) {
    if (signalled_.empty()) return false;
    const bool moved = latched_ && !(source == source_);
    if (moved && (now_ns - last_ns_ < silence_ns || !source.same_network(source_))) return false;
    if (moved || !latched_) source_ = source;
    latched_ = true;
    last_ns_ = now_ns;
    return true;
}

}  // namespace trunkline::engine
