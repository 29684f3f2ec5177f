#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "trunkline/dsp/dtmf_detector.hpp"
#include "trunkline/dsp/frames.hpp"
#include "trunkline/dsp/machine_detector.hpp"
#include "trunkline/dsp/tone_tracker.hpp"
#include "trunkline/dsp/voice_activity.hpp"
#include "trunkline/engine/listener.hpp"

namespace trunkline::engine {

class Stream;
class StreamHandle;

/// A listener that tells its stream what it finds, 10 ms at a time. It hears a far end that is muted, too.
class Detector : public Listener {
  public:
    explicit Detector(Side side = Side::received) : Listener(dsp::detector_rate_hz, Hears::all, side) {}

    /// The stream it listens to; on its thread, before it is attached.
    void bind(Stream& stream) {
        stream_ = &stream;
        begin();
    }

    void put(const graph::AudioChunk& chunk, std::int64_t now_ns) final {
        cutter_.put(chunk.samples, [&](dsp::DetectorFrame frame) { look(frame, now_ns); });
    }

  protected:
    virtual void look(dsp::DetectorFrame frame, std::int64_t now_ns) = 0;

    /// The stream is known, and nothing was heard yet.
    virtual void begin() {}

    Stream& stream() { return *stream_; }

  private:
    Stream* stream_ = nullptr;
    dsp::FrameCutter cutter_;
};

/// Finds keys the far end sends as tones. What may be an echo of our own is not looked at.
class KeyDetector final : public Detector {
  private:
    void look(dsp::DetectorFrame frame, std::int64_t now_ns) override;

    dsp::DtmfDetector detector_;
    std::optional<std::int64_t> dialled_ns_;  ///< When we last sent digits ourselves.
};

/// Tells when the far end begins and ceases to speak: those who asked, and playbacks that end by it.
class SpeechListener final : public Detector {
  public:
    /// `tells` false: only playbacks are told.
    SpeechListener(const dsp::VoiceSettings& settings, bool tells) : detector_(settings), tells_(tells) {}

  private:
    void look(dsp::DetectorFrame frame, std::int64_t now_ns) override;

    dsp::SpeechDetector detector_;
    bool tells_;
};

/// Tells who answered, and when a machine begins to listen.
class AnswerListener final : public Detector {
  public:
    explicit AnswerListener(const dsp::AnswerSettings& settings) : classifier_(settings) {}

  private:
    void look(dsp::DetectorFrame frame, std::int64_t now_ns) override;

    dsp::MachineDetector classifier_;
};

/// Tells of tones that machines make.
class ToneListener final : public Detector {
  public:
    explicit ToneListener(const dsp::ToneNamer::Limits& limits) : namer_(limits) {}

  private:
    void look(dsp::DetectorFrame frame, std::int64_t now_ns) override;

    dsp::ToneNamer namer_;
};

/// The loudest moment of each second of one direction.
class LoudestMoment {
  public:
    /// Process 10 ms; the decibels above silence of a second that is complete.
    std::optional<std::uint32_t> put(std::span<const std::int16_t> frame);

  private:
    float power_ = 0;  ///< Smoothed over some 50 ms.
    float loudest_ = 0;
    std::uint32_t frames_ = 0;
};

/// Measures how loud the far end is, and what is sent to it, in the stream's figures.
class LevelMeter final : public Detector {
  public:
    LevelMeter() : Detector(Side::both) {}

    void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) override;

  private:
    void begin() override;
    void look(dsp::DetectorFrame frame, std::int64_t now_ns) override;
    void tick(std::int64_t now_ns) override;

    LoudestMoment received_;
    LoudestMoment sent_;
    std::int64_t sent_ns_ = 0;  ///< When audio was sent last.
};

/// The control thread's account of a stream's detectors, one of each kind.
class DetectorSlots {
  public:
    enum class Kind : std::uint8_t { keys, speech, barge_in, answer, tones, level };

    /// Attach a detector; one of the same kind that is there goes.
    void start(StreamHandle& stream, Kind kind, std::unique_ptr<Detector> detector);

    /// Remove a detector; harmless when there is none.
    void stop(StreamHandle& stream, Kind kind);

    bool runs(Kind kind) const { return attached_[static_cast<std::size_t>(kind)] != nullptr; }

    /// Run the detectors for a playback that ends by speech, or for a far end that sends keys as tones.
    void need_speech(StreamHandle& stream);
    void need_keys(StreamHandle& stream);

  private:
    static constexpr std::size_t kinds = 6;

    Listener*& slot(Kind kind) { return attached_[static_cast<std::size_t>(kind)]; }

    std::array<Listener*, kinds> attached_{};
};

}  // namespace trunkline::engine
