#include "trunkline/engine/latch.hpp"

namespace trunkline::engine {

namespace {

/// A candidate that sent nothing for so long makes room for another.
constexpr std::int64_t candidate_patience_ns = 200'000'000;

// Likelihood that a source that was not signalled is the far end.
constexpr int rank_elsewhere = 0;
constexpr int rank_network = 1;
constexpr int rank_host = 2;

}  // namespace

void Latch::signal(const io::Address& remote) {
    paused_ = remote.is_wildcard();
    if (paused_) return;
    // An address that cannot be sent to, instead of our own: packets would go round for ever.
    const io::Address meant = is_own(remote) ? remote.with_port(0) : remote;
    if (meant == signalled_) return;
    signalled_ = meant;
    latched_ = false;
    candidate_ = {};
}

bool Latch::accept(const io::Address& source, const rtp::Header& header, std::int64_t now_ns) {
    if (signalled_.empty()) return false;
    if (latched_ && source == source_) {
        last_ns_ = now_ns;
        return true;
    }
    if (latched_ && now_ns - last_ns_ < silence_ns) return false;
    const bool signalled = source == signalled_;
    if (!signalled && latched_ && !source.same_network(source_)) return false;
    if (!signalled && (is_own(source) || !proves(source, header, now_ns))) return false;
    learn(source, now_ns);
    return true;
}

bool Latch::is_own(const io::Address& address) const {
    if (own_.empty() || (address.udp_port() | 1) != (own_.udp_port() | 1)) return false;
    return own_.is_wildcard() ? address.is_loopback() : own_.same_host(address);
}

/// True if the source has now sent enough packets in a row.
bool Latch::proves(const io::Address& source, const rtp::Header& header, std::int64_t now_ns) {
    if (!consider(source, header, now_ns)) return false;
    if (candidate_.rank == rank_host) return candidate_.packets >= proof_packets_same_host;
    if (candidate_.packets < proof_packets) return false;
    const bool waits = candidate_.rank == rank_elsewhere && !signalled_.is_private();
    return !waits || now_ns - candidate_.first_ns >= precedence_ns;
}

/// Count the packet for its source; false when another candidate stands before it.
bool Latch::consider(const io::Address& source, const rtp::Header& header, std::int64_t now_ns) {
    if (candidate_.packets == 0 || !(candidate_.source == source)) {
        const int rank = rank_of(source);
        const bool free = candidate_.packets == 0 || rank > candidate_.rank ||
                          now_ns - candidate_.last_ns >= candidate_patience_ns;
        if (!free) return false;
        candidate_ = {};
        candidate_.source = source;
        candidate_.rank = rank;
    }
    const bool follows = candidate_.packets != 0 && candidate_.ssrc == header.ssrc &&
                         candidate_.next_sequence == header.sequence;
    if (!follows) {
        candidate_.packets = 0;
        candidate_.first_ns = now_ns;
    }
    ++candidate_.packets;
    candidate_.ssrc = header.ssrc;
    candidate_.next_sequence = static_cast<std::uint16_t>(header.sequence + 1);
    candidate_.last_ns = now_ns;
    return true;
}

int Latch::rank_of(const io::Address& source) const {
    if (source.same_host(known())) return rank_host;
    return source.same_network(known()) ? rank_network : rank_elsewhere;
}

void Latch::learn(const io::Address& source, std::int64_t now_ns) {
    source_ = source;
    latched_ = true;
    last_ns_ = now_ns;
    candidate_ = {};
    ++moves_;
}

}  // namespace trunkline::engine
