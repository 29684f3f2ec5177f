// Streams that hear both directions of another one, and change nothing of it.

#include "trunkline/engine/monitor.hpp"

#include <algorithm>
#include <stdexcept>

#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::engine {

bool MonitorLine::pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t) {
    // Parts for another codec are on their way, and a line of its rate behind them.
    if (rate_hz != rate_hz_) return false;
    std::array<std::int16_t, codec::max_packet_samples> room;
    const auto sent = std::span(room).first(out.size());
    received_.pull(out);
    sent_.pull(sent);
    for (std::size_t n = 0; n < out.size(); ++n) {
        out[n] = static_cast<std::int16_t>(std::clamp(out[n] + sent[n], -32768, 32767));
    }
    return true;
}

std::shared_ptr<MonitorHandle> StreamHandle::monitor(const std::shared_ptr<StreamHandle>& hearing) {
    if (!open() || !hearing->open()) return nullptr;
    if (hearing.get() == this) throw std::invalid_argument("a stream cannot hear itself");
    const std::uint32_t rate_hz = hearing->outfit_.settings().format.rate_hz();
    auto line = std::make_shared<MonitorLine>(rate_hz);
    use(Use::monitor);
    Listener* ear = attach_listener(std::make_unique<MonitorEar>(line));
    hearing->use(Use::source);
    hearing->order([line](Stream& stream, std::int64_t now_ns) { stream.attach_source(line.get(), now_ns); });
    return std::make_shared<MonitorHandle>(shared_from_this(), hearing, ear, std::move(line));
}

void StreamHandle::end_monitor(Listener* ear) {
    detach_listener(ear);
    use(Use::monitor, false);
}

void StreamHandle::release_source(std::shared_ptr<MonitorLine> line) {
    order([](Stream& stream, std::int64_t now_ns) { stream.attach_source(nullptr, now_ns); });
    if (open()) use(Use::source, false);
    // Also behind the order that closed the stream: until that has run, the stream may pull.
    shard_->submit(make_command([line = std::move(line)](std::int64_t) {}), false);
}

void MonitorHandle::close() {
    if (line_ == nullptr) return;
    hearing_->release_source(std::move(line_));
    line_ = nullptr;
    if (heard_->open()) heard_->end_monitor(ear_);
}

}  // namespace trunkline::engine
