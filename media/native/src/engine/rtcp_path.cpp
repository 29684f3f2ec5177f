#include "trunkline/engine/rtcp_path.hpp"

namespace trunkline::engine {

void RtcpPath::signal(const std::optional<io::Address>& remote) {
    // Hold in older offers; what was learnt is kept.
    const bool paused = remote && remote->is_wildcard();
    if (paused || remote == signalled_) return;
    signalled_ = remote;
    source_.reset();
}

bool RtcpPath::allows(const io::Address& source, bool shared, const Latch& rtp, std::int64_t now_ns) const {
    if (rtp.is_own(source)) return false;
    // Some far ends use one port whatever was agreed.
    if (shared) return source == rtp.known();
    if (!signalled_) return false;
    if (source_ && !(source == *source_) && now_ns - last_ns_ < silence_ns) return false;
    return source == *signalled_ || source.same_host(rtp.known());
}

void RtcpPath::heard(const io::Address& source, bool shared, std::int64_t now_ns) {
    if (shared) return;
    source_ = source;
    last_ns_ = now_ns;
}

io::Address RtcpPath::remote(const Latch& rtp) const {
    const io::Address& audio = rtp.remote();
    if (!signalled_ || !audio.reachable()) return audio;
    if (source_) return *source_;
    if (rtp.is_own(*signalled_)) return {};
    // RTP comes from elsewhere than was signalled, and so will RTCP; one port above is the best guess.
    const bool moved = rtp.latched() && !rtp.signalled().same_host(audio);
    return moved ? audio.with_port(static_cast<std::uint16_t>(audio.udp_port() + 1)) : *signalled_;
}

}  // namespace trunkline::engine
