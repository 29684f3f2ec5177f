#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "peer.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/codec/duration.hpp"

namespace trunkline::tests {

/// Media settings for a codec, with events of the same clock.
inline engine::MediaSettings speaking(std::uint16_t udp_port, const codec::Format& format,
                                      std::uint32_t ptime_ms = 20) {
    engine::MediaSettings settings = towards(udp_port);
    settings.format = format;
    settings.payload_type = 96;
    if (codec::is_g711(format)) settings.payload_type = format.codec == codec::Codec::pcmu ? 0 : 8;
    settings.ptime_ms = ptime_ms;
    return settings;
}

/// A far end that speaks and hears one codec, packet by packet.
class FarEnd {
  public:
    explicit FarEnd(const codec::Format& format, std::uint32_t ptime_ms = 20, std::uint32_t ssrc = 0xF00D)
        : format_(format),
          ptime_ms_(ptime_ms),
          ssrc_(ssrc),
          encoder_(codec::make_encoder(format)),
          decoder_(codec::make_decoder(format)) {}

    engine::MediaSettings settings() const { return speaking(peer.udp_port(), format_, ptime_ms_); }
    std::size_t frame_samples() const { return format_.rate_hz() / 1000 * ptime_ms_; }
    std::uint32_t frame_units() const { return codec::units_of_ms(format_, ptime_ms_); }

    /// Send one packet of sound, or let its time pass.
    void speak(std::uint16_t to_port, std::span<const std::int16_t> frame, bool send = true) {
        std::vector<std::uint8_t> payload(codec::max_payload_bytes);
        payload.resize(encoder_->encode(frame, payload));
        const rtp::Header header{settings().payload_type, false, sequence_++, timestamp_, ssrc_};
        timestamp_ += frame_units();
        if (send) peer.send(to_port, header, payload);
    }

    /// Pass over a packet time without having sent anything.
    void pause() { timestamp_ += frame_units(); }

    /// Take what came in, decoding what is sound.
    void listen() {
        while (const auto packet = peer.hear(0)) {
            headers.push_back(packet->header);
            if (packet->header.payload_type != settings().payload_type) {
                others.push_back(*packet);
                continue;
            }
            std::vector<std::int16_t> samples(codec::max_packet_samples);
            samples.resize(decoder_->decode(packet->payload, samples));
            lengths.push_back(samples.size());
            heard.insert(heard.end(), samples.begin(), samples.end());
        }
    }

    Peer peer;
    std::vector<rtp::Header> headers;  ///< Of all packets that came.
    std::vector<Heard> others;         ///< Those that were no sound.
    std::vector<std::size_t> lengths;  ///< Of those that were, in samples.
    std::vector<std::int16_t> heard;

  private:
    codec::Format format_;
    std::uint32_t ptime_ms_;
    std::uint32_t ssrc_;
    std::unique_ptr<codec::Encoder> encoder_;
    std::unique_ptr<codec::Decoder> decoder_;
    std::uint16_t sequence_ = 700;
    std::uint32_t timestamp_ = 5000;
};

/// Ticks of a real clock, for far ends that send in real time.
class Metronome {
  public:
    explicit Metronome(std::uint32_t period_ms) : period_(period_ms) {}
    void wait() { std::this_thread::sleep_until(next_ += period_); }

  private:
    std::chrono::milliseconds period_;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

/// The codecs that were built in, at each of their clocks.
inline std::vector<codec::Format> built_in_formats() {
    std::vector<codec::Format> found;
    for (const codec::Format& format :
         {codec::Format{codec::Codec::pcmu, 8000}, codec::Format{codec::Codec::pcma, 8000},
          codec::Format{codec::Codec::g722, 8000}, codec::Format{codec::Codec::l16, 8000},
          codec::Format{codec::Codec::l16, 16000}, codec::Format{codec::Codec::opus, 48000}}) {
        if (codec::supported(format)) found.push_back(format);
    }
    return found;
}

}  // namespace trunkline::tests
