#include "trunkline/engine/stream.hpp"

#include <algorithm>
#include <utility>

namespace trunkline::engine {

Stream::Stream(std::uint64_t id, io::UdpSocket socket, rtp::Sender sender, Outlet& outlet, TickWheel& wheel)
    : id_(id),
      socket_(std::move(socket)),
      sender_(sender),
      outlet_(outlet),
      wheel_(wheel),
      playback_(*this) {}

Stream::~Stream() {
    delete tap_;
    delete recorder_;
    util::NodeStack::destroy(dtmf_first_);
}

void Stream::connect(const MediaSettings& settings, std::int64_t now_ns) {
    const bool beat_changed = settings.ptime_ms != settings_.ptime_ms;
    settings_ = settings;
    connected_ = true;
    latch_.signal(settings.remote);
    // What was not expected before is not missed either.
    last_heard_ns_ = now_ns;
    if (beat_changed) wheel_.disarm(send_ticker_);
    run_clocks(now_ns);
}

void Stream::link(Stream& other) {
    unlink();
    other.unlink();
    peer_ = &other;
    other.peer_ = this;
}

void Stream::unlink() {
    if (peer_ == nullptr) return;
    std::exchange(peer_->peer_, nullptr);
    peer_ = nullptr;
}

void Stream::play(graph::Clip* clip, std::int64_t now_ns) {
    playback_.append(clip);
    run_clocks(now_ns);
}

void Stream::stop_playback(std::int64_t now_ns) {
    playback_.stop();
    run_clocks(now_ns);
}

void Stream::send_dtmf(DtmfText* text, std::int64_t now_ns) {
    text->next_node = nullptr;
    if (dtmf_first_ == nullptr) {
        dtmf_first_ = dtmf_last_ = text;
        next_dtmf_text();
    } else {
        dtmf_last_->next_node = text;
        dtmf_last_ = text;
    }
    run_clocks(now_ns);
}

void Stream::attach_tap(Tap* tap, std::int64_t now_ns) {
    detach_tap(now_ns);
    tap_ = tap;
    run_clocks(now_ns);
}

void Stream::detach_tap(std::int64_t now_ns) {
    if (tap_ == nullptr) return;
    tap_->playout().clear();
    outlet_.discard(std::exchange(tap_, nullptr));
    run_clocks(now_ns);
}

void Stream::attach_recorder(Recorder* recorder, std::int64_t now_ns) {
    detach_recorder(now_ns);
    recorder_ = recorder;
    (void)recorder_->tick(now_ns);
    run_clocks(now_ns);
}

void Stream::detach_recorder(std::int64_t now_ns) {
    if (recorder_ == nullptr) return;
    recorder_->finish(now_ns);
    outlet_.discard(std::exchange(recorder_, nullptr));
    run_clocks(now_ns);
}

void Stream::pause_recorder(bool paused, std::int64_t now_ns) {
    if (recorder_ != nullptr) recorder_->pause(paused, now_ns);
}

void Stream::set_media_timeout(std::int64_t timeout_ns, std::int64_t now_ns) {
    timeout_ns_ = timeout_ns;
    silence_reported_ = false;
    last_heard_ns_ = now_ns;
}

void Stream::shut(std::int64_t now_ns) {
    unlink();
    connected_ = false;
    playback_.stop();
    while (dtmf_first_ != nullptr) {
        finish_dtmf_text();
    }
    detach_tap(now_ns);
    detach_recorder(now_ns);
    wheel_.disarm(send_ticker_);
    wheel_.disarm(receive_ticker_);
    socket_.close();
}

void Stream::check_silence(std::int64_t now_ns) {
    if (timeout_ns_ == 0 || silence_reported_ || !connected_ || !settings_.receive) return;
    const std::int64_t silent_ns = now_ns - last_heard_ns_;
    if (silent_ns < timeout_ns_) return;
    silence_reported_ = true;
    outlet_.emit({id_, EventKind::media_timeout, 0, static_cast<std::uint64_t>(silent_ns / 1'000'000), 0});
}

/// Arm the beats that are needed and no others.
void Stream::run_clocks(std::int64_t now_ns) {
    const bool sends = connected_ && (tap_ != nullptr || !playback_.empty() || dtmf_first_ != nullptr);
    if (!sends) {
        wheel_.disarm(send_ticker_);
    } else if (!send_ticker_.armed()) {
        wheel_.arm(send_ticker_, settings_.ptime_ms, now_ns);
    }
    const bool reads = tap_ != nullptr || recorder_ != nullptr || dtmf_receiver_.pressed();
    if (!reads) {
        wheel_.disarm(receive_ticker_);
    } else if (!receive_ticker_.armed()) {
        wheel_.arm(receive_ticker_, Tap::frame_ms, now_ns);
    }
}

void Stream::playback_finished(std::uint64_t id, bool interrupted) {
    outlet_.emit({id_, EventKind::playback_finished, interrupted ? 1U : 0U, id, 0});
}

}  // namespace trunkline::engine
