#include "trunkline/engine/detectors.hpp"

#include <algorithm>
#include <utility>

#include "trunkline/engine/stream.hpp"
#include "trunkline/engine/stream_handle.hpp"
#include "trunkline/graph/mix.hpp"

namespace trunkline::engine {

namespace {

/// Time after our own digits in which their echo may arrive.
constexpr std::int64_t echo_ns = 250'000'000;

/// Frames of 10 ms of which the loudest moment is told, and the weight of one.
constexpr std::uint32_t meter_frames = 100;
constexpr float meter_smoothing = 0.2F;

/// Time without sent audio after which its level is silence.
constexpr std::int64_t sent_pause_ns = 1'000'000'000;

}  // namespace

void KeyDetector::look(dsp::DetectorFrame frame, std::int64_t now_ns) {
    if (stream().sending_digits()) dialled_ns_ = now_ns;
    const bool echo = dialled_ns_ && now_ns - *dialled_ns_ < echo_ns;
    for (const dsp::DtmfDetector::Change& change : detector_.frame(frame)) {
        if (echo) continue;
        if (change.down) {
            stream().key_pressed(change.key, now_ns);
        } else {
            stream().digit_detected({change.key, change.duration_ms}, now_ns);
        }
    }
}

void SpeechListener::look(dsp::DetectorFrame frame, std::int64_t now_ns) {
    switch (detector_.frame(frame)) {
        case dsp::SpeechDetector::Change::none:
            return;
        case dsp::SpeechDetector::Change::started:
            stream().speech_started(now_ns);
            if (tells_) stream().tell(EventKind::speech_started);
            return;
        case dsp::SpeechDetector::Change::stopped:
            if (tells_) stream().tell(EventKind::speech_stopped, 0, detector_.duration_ms());
            return;
    }
}

void AnswerListener::look(dsp::DetectorFrame frame, std::int64_t) {
    const auto outcome = classifier_.frame(frame);
    if (outcome.verdict) {
        const auto answer = static_cast<std::uint32_t>(outcome.verdict->answer);
        const auto reason = static_cast<std::uint32_t>(outcome.verdict->reason);
        stream().tell(EventKind::machine_verdict, answer | reason << 8, outcome.verdict->took_ms);
    }
    if (outcome.greeting_end) {
        stream().tell(EventKind::greeting_ended, static_cast<std::uint32_t>(*outcome.greeting_end),
                      classifier_.elapsed_ms());
    }
}

void ToneListener::look(dsp::DetectorFrame frame, std::int64_t) {
    const auto tone = namer_.frame(frame);
    if (!tone) return;
    stream().tell(EventKind::tone_detected, static_cast<std::uint32_t>(tone->kind), tone->duration_ms,
                  static_cast<std::uint64_t>(tone->freq_hz + 0.5F));
}

std::optional<std::uint32_t> LoudestMoment::put(std::span<const std::int16_t> frame) {
    power_ += (graph::power_of(frame) - power_) * meter_smoothing;
    loudest_ = std::max(loudest_, power_);
    if (++frames_ < meter_frames) return std::nullopt;
    frames_ = 0;
    return graph::level_dbov(0) - graph::level_dbov(std::exchange(loudest_, 0.0F));
}

void LevelMeter::begin() {
    // The figures are of the meter that was there before, if any.
    stream().figures().loudness_db.set(0);
    stream().figures().sent_loudness_db.set(0);
}

void LevelMeter::look(dsp::DetectorFrame frame, std::int64_t) {
    if (const auto loudest_db = received_.put(frame)) stream().figures().loudness_db.set(*loudest_db);
}

void LevelMeter::put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
    sent_ns_ = now_ns;
    // A power is the same at any rate, and packets are whole frames of 10 ms but for a last one.
    const std::size_t frame = rate_hz / 1000 * dsp::detector_frame_ms;
    for (; !samples.empty(); samples = samples.subspan(std::min(frame, samples.size()))) {
        const auto loudest_db = sent_.put(samples.first(std::min(frame, samples.size())));
        if (loudest_db) stream().figures().sent_loudness_db.set(*loudest_db);
    }
}

void LevelMeter::tick(std::int64_t now_ns) {
    if (now_ns - sent_ns_ > sent_pause_ns) stream().figures().sent_loudness_db.set(0);
}

void DetectorSlots::start(StreamHandle& stream, Kind kind, std::unique_ptr<Detector> detector) {
    if (!stream.open()) return;
    stop(stream, kind);
    if (kind == Kind::keys) stream.use(Use::keys);
    // A linked stream decodes what it relays, for the level of what is sent.
    if (kind == Kind::level) stream.use(Use::monitor);
    // The stream is known on its own thread; this order runs before the one that attaches.
    stream.order([bound = detector.get()](Stream& heard, std::int64_t) { bound->bind(heard); });
    slot(kind) = stream.attach_listener(std::move(detector));
}

void DetectorSlots::stop(StreamHandle& stream, Kind kind) {
    Listener* listener = std::exchange(slot(kind), nullptr);
    if (listener == nullptr) return;
    stream.detach_listener(listener);
    if (kind == Kind::keys) stream.use(Use::keys, false);
    if (kind == Kind::level) stream.use(Use::monitor, false);
}

void DetectorSlots::need_speech(StreamHandle& stream) {
    if (slot(Kind::speech) != nullptr || slot(Kind::barge_in) != nullptr) return;
    start(stream, Kind::barge_in, std::make_unique<SpeechListener>(dsp::VoiceSettings{}, false));
}

void DetectorSlots::need_keys(StreamHandle& stream) {
    if (slot(Kind::keys) == nullptr) start(stream, Kind::keys, std::make_unique<KeyDetector>());
}

}  // namespace trunkline::engine
