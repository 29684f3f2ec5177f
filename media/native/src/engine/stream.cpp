#include "trunkline/engine/stream.hpp"

#include <algorithm>
#include <utility>

#include "trunkline/engine/browser_table.hpp"

namespace trunkline::engine {

namespace {

/// Noise in place of silence: as loud as a quiet room.
constexpr std::uint8_t filling_noise_dbov = 58;

}  // namespace

Stream::Stream(std::uint64_t id, io::UdpSocket socket, rtp::Sender sender, EventQueue& event_queue,
               TimerWheel& wheel, std::int64_t now_ns)
    : id_(id),
      media_socket_(std::move(socket), figures_, event_queue),
      sender_(sender),
      event_queue_(event_queue),
      wheel_(wheel),
      latch_(media_socket_.local()),
      rtcp_(*this, sender_.ssrc(), now_ns),
      playback_(*this) {
    figures_.ssrc_out.set(sender_.ssrc());
}

Stream::~Stream() {
    delete tap_;
    delete tracks_;
    delete recorder_;
    delete receive_path_;
    delete send_path_;
    while (listeners_ != nullptr) {
        delete std::exchange(listeners_, listeners_->next_listener_);
    }
    util::NodeStack::destroy(dtmf_first_);
}

void Stream::equip(StreamParts parts, std::int64_t now_ns) {
    if (parts.drop_receive_path && receive_path_ != nullptr) {
        event_queue_.discard(std::exchange(receive_path_, nullptr));
        hears_ = false;
    }
    if (parts.receive_path != nullptr) {
        if (receive_path_ != nullptr) event_queue_.discard(receive_path_);
        receive_path_ = parts.receive_path.release();
        hears_ = false;
    }
    if (parts.decoders != nullptr && receive_path_ != nullptr) {
        event_queue_.discard(receive_path_->replace(parts.decoders.release(), now_ns));
    }
    if (parts.send_path != nullptr) {
        if (send_path_ != nullptr) event_queue_.discard(send_path_);
        send_path_ = parts.send_path.release();
        key_tones_.stop();
    }
    run_clocks(now_ns);
}

void Stream::connect(const MediaSettings& settings, SrtpChange& srtp, std::uint32_t fresh_ssrc,
                     std::int64_t now_ns) {
    media_socket_.protect(srtp);
    const bool period_changed = settings.ptime_ms != settings_.ptime_ms;
    const std::uint32_t clock_hz = settings.format.clock_hz;
    if (srtp.sent_again || clock_hz != sender_.clock_hz()) {
        sender_.restart(fresh_ssrc, clock_hz);
        figures_.ssrc_out.set(fresh_ssrc);
        follow_ssrc();
    }
    if (!(settings.format == settings_.format)) {
        reception_.set_clock(clock_hz);
        dtmf_receiver_.set_clock(clock_hz);
        restarted_ = true;
    }
    settings_ = settings;
    connected_ = true;
    latch_.signal(settings.remote);
    if (!latch_.latched()) reception_.reopen();
    rtcp_.path.signal(settings.rtcp_remote);
    rtcp_.session.start(now_ns);
    // What was not expected before is not missed either.
    last_heard_ns_ = now_ns;
    if (period_changed) wheel_.disarm(send_ticker_);
    run_clocks(now_ns);
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::link(Stream& other, std::int64_t now_ns) {
    unlink(now_ns);
    other.unlink(now_ns);
    peer_ = &other;
    other.peer_ = this;
    low_latency = other.low_latency = true;
    route_ = other.route_ = Route::none;
    event_.press = other.event_.press = 0;
    run_clocks(now_ns);
    other.run_clocks(now_ns);
}

void Stream::unlink(std::int64_t now_ns) {
    if (peer_ == nullptr) return;
    Stream& other = *std::exchange(peer_, nullptr);
    other.peer_ = nullptr;
    low_latency = other.low_latency = false;
    run_clocks(now_ns);
    other.run_clocks(now_ns);
}

void Stream::mute(bool received, bool sent, std::int64_t now_ns) {
    muted_.received = received;
    muted_.sent = sent;
    run_clocks(now_ns);
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::fill_with_noise(bool active, std::int64_t now_ns) {
    if (active && !fills_with_noise_) {
        noise_.reset();
        noise_.set({.level_dbov = filling_noise_dbov});
    }
    fills_with_noise_ = active;
    run_clocks(now_ns);
}

void Stream::play(graph::Playback* playback, std::int64_t now_ns) {
    playback_.append(playback);
    run_clocks(now_ns);
}

void Stream::pause_playback(std::int64_t now_ns) {
    playback_.pause();
    run_clocks(now_ns);
}

void Stream::resume_playback(std::int64_t now_ns) {
    playback_.resume();
    run_clocks(now_ns);
}

void Stream::stop_playback(std::int64_t now_ns) {
    playback_.stop();
    run_clocks(now_ns);
}

void Stream::play_track(std::size_t track, graph::Playback* playback, graph::TrackMixer* mixer,
                        std::int64_t now_ns) {
    if (tracks_ == nullptr) {
        tracks_ = mixer;
    } else {
        event_queue_.discard(mixer);
    }
    tracks_->play(track, playback);
    run_clocks(now_ns);
    // What the linked stream relayed so far is decoded now.
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::stop_track(std::size_t track, std::int64_t now_ns) {
    if (tracks_ == nullptr) return;
    tracks_->stop(track);
    run_clocks(now_ns);
}

void Stream::send_dtmf(DtmfText* text, std::int64_t now_ns) {
    text->next_node = nullptr;
    if (dtmf_first_ == nullptr) {
        dtmf_first_ = text;
    } else {
        dtmf_last_->next_node = text;
    }
    dtmf_last_ = text;
    if (digits_ == Digits::none) next_digits();
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
    tap_->join(nullptr);
    event_queue_.discard(std::exchange(tap_, nullptr));
    run_clocks(now_ns);
}

void Stream::attach_recorder(Recorder* recorder, std::int64_t now_ns) {
    detach_recorder(now_ns);
    recorder_ = recorder;
    (void)recorder_->tick(now_ns);
    run_clocks(now_ns);
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::detach_recorder(std::int64_t now_ns) {
    if (recorder_ == nullptr) return;
    recorder_->finish(now_ns);
    event_queue_.discard(std::exchange(recorder_, nullptr));
    run_clocks(now_ns);
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::attach_listener(Listener* listener, std::int64_t now_ns) {
    listener->next_listener_ = listeners_;
    listeners_ = listener;
    note_listener(*listener, 1, now_ns);
}

void Stream::detach_listener(Listener* listener, std::int64_t now_ns) {
    Listener** place = &listeners_;
    while (*place != nullptr && *place != listener) {
        place = &(*place)->next_listener_;
    }
    if (*place == nullptr) return;
    *place = listener->next_listener_;
    note_listener(*listener, -1, now_ns);
    event_queue_.discard(listener);
}

/// Note that a listener has come or gone; what one of both sides hears of what is relayed, the linked stream
/// decodes.
void Stream::note_listener(const Listener& listener, int change, std::int64_t now_ns) {
    run_clocks(now_ns);
    if (!listener.hears_sent()) return;
    sent_listeners_ += static_cast<std::uint32_t>(change);
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

void Stream::attach_source(AudioSource* source, std::int64_t now_ns) {
    source_ = source;
    run_clocks(now_ns);
}

void Stream::pause_recorder(bool paused, std::int64_t now_ns) {
    if (recorder_ != nullptr) recorder_->pause(paused, now_ns);
}

void Stream::set_media_timeout(std::int64_t timeout_ns, std::int64_t hold_timeout_ns, std::int64_t now_ns) {
    timeout_ns_ = timeout_ns;
    hold_timeout_ns_ = hold_timeout_ns;
    silence_reported_ = false;
    last_heard_ns_ = now_ns;
}

void Stream::join(BrowserLeg* leg) {
    if (browser_ != nullptr) browser_->stream = nullptr;
    browser_ = leg;
    if (leg == nullptr) return;
    if (leg->stream != nullptr) leg->stream->browser_ = nullptr;
    leg->stream = this;
}

void Stream::shut(std::int64_t now_ns) {
    unlink(now_ns);
    join(nullptr);
    say_goodbye(now_ns);
    connected_ = false;
    playback_.stop();
    if (tracks_ != nullptr) {
        tracks_->stop_all();
        event_queue_.discard(std::exchange(tracks_, nullptr));
    }
    while (dtmf_first_ != nullptr) {
        finish_dtmf_text();
    }
    detach_tap(now_ns);
    detach_recorder(now_ns);
    while (listeners_ != nullptr) {
        detach_listener(listeners_, now_ns);
    }
    source_ = nullptr;
    wheel_.disarm(send_ticker_);
    wheel_.disarm(receive_ticker_);
    media_socket_.close();
    rtcp_.socket.close();
}

void Stream::check(std::int64_t now_ns) {
    check_silence(now_ns);
    check_rtcp(now_ns);
}

void Stream::check_silence(std::int64_t now_ns) {
    // While no audio is due, reports tell that the far end is there.
    const bool held = !settings_.receive;
    const std::int64_t limit_ns = held ? hold_timeout_ns_ : timeout_ns_;
    if (limit_ns == 0 || silence_reported_ || !connected_) return;
    const std::int64_t last_ns = held ? std::max(last_heard_ns_, rtcp_.heard_ns) : last_heard_ns_;
    const std::int64_t silent_ns = now_ns - last_ns;
    if (silent_ns < limit_ns) return;
    silence_reported_ = true;
    event_queue_.emit({id_, EventKind::media_timeout, held ? 1U : 0U,
                       static_cast<std::uint64_t>(silent_ns / 1'000'000), 0});
}

/// Arm the ticks that are needed and no others.
void Stream::run_clocks(std::int64_t now_ns) {
    if (!must_send()) {
        wheel_.disarm(send_ticker_);
    } else if (!send_ticker_.armed()) {
        wheel_.arm(send_ticker_, settings_.ptime_ms, now_ns);
    }
    const bool hears = receive_path_ != nullptr && must_hear();
    if (hears && !hears_) receive_path_->begin(now_ns);
    hears_ = hears;
    if (!hears && recorder_ == nullptr && !dtmf_receiver_.pressed()) {
        wheel_.disarm(receive_ticker_);
    } else if (!receive_ticker_.armed()) {
        wheel_.arm(receive_ticker_, Tap::frame_ms, now_ns);
    }
}

void Stream::key_pressed(char key, std::int64_t now_ns) {
    playback_.barge_in(graph::PlaybackEnd::digit, key);
    run_clocks(now_ns);
}

void Stream::speech_started(std::int64_t now_ns) {
    playback_.barge_in(graph::PlaybackEnd::speech);
    run_clocks(now_ns);
}

void Stream::playback_finished(std::uint64_t id, graph::PlaybackEnd why, char key, std::uint64_t played_ms) {
    const auto cause = static_cast<std::uint32_t>(why) | std::uint32_t{static_cast<std::uint8_t>(key)} << 8;
    event_queue_.emit({id_, EventKind::playback_finished, cause, id, played_ms});
}

void Stream::playback_position(std::uint64_t id, std::uint64_t played_ms) {
    event_queue_.emit({id_, EventKind::playback_position, 0, id, played_ms});
}

}  // namespace trunkline::engine
