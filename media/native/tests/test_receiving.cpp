// Both stages of receiving over an hour of virtual time, behind a simulated network.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "impairment.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/graph/jitter_buffer.hpp"
#include "trunkline/graph/playout_buffer.hpp"
#include "trunkline/rtp/sequence_tracker.hpp"

using namespace trunkline;
using graph::Origin;
using tests::Arrival;
using tests::Impairment;
using tests::ms;

namespace {

/// The sine repeats after so many samples, in which it has so many periods: 445 Hz. Packets all differ.
constexpr std::size_t table_samples = 1600;
constexpr std::size_t table_periods = 89;
constexpr double amplitude = 10000;
/// Largest step from one sample of the sine to the next.
constexpr double steepest = amplitude * 2 * std::numbers::pi * table_periods / table_samples;
constexpr std::size_t frame_samples = 160;
constexpr std::int64_t hour_ms = 3'600'000;

double wave(std::uint64_t at, double shift) {
    static const std::vector<double> table = [] {
        std::vector<double> sine(table_samples);
        for (std::size_t n = 0; n < table_samples; ++n) {
            sine[n] = std::sin(2 * std::numbers::pi * static_cast<double>(n) / table_samples);
        }
        return sine;
    }();
    return table[(at * table_periods + static_cast<std::size_t>(shift * table_samples)) % table_samples];
}

/// What came out of a run.
struct Heard {
    std::uint64_t first_stage_samples = 0;
    std::uint64_t first_heard = 0;      ///< Samples handed out before the first packet.
    std::uint64_t made_up_samples = 0;  ///< By the first stage.
    std::uint64_t frames = 0;
    std::uint64_t clean_frames = 0;  ///< With a signal-to-noise ratio of 30 dB and the right level.
    std::int32_t largest_jump = 0;
    std::vector<float> delays_ms;  ///< Beyond the quickest way through the network, frame by frame.
    graph::DecodingFigures decoding;
    graph::ClockedFigures clocked;

    double delay_ms(double share) {
        const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(delays_ms.size() - 1));
        std::nth_element(delays_ms.begin(), delays_ms.begin() + at, delays_ms.end());
        return delays_ms[static_cast<std::size_t>(at)];
    }

    double clean_share() const { return static_cast<double>(clean_frames) / static_cast<double>(frames); }
};

/// A sender of a sine, a network, both stages and a consumer with a clock of its own.
class Run {
  public:
    Run(const Impairment& impairment, std::uint32_t seed)
        : impairment_(impairment), sender_(impairment, seed), decoder_(codec::make_decoder({})) {
        buffer_.use(decoder_.get(), 0);
    }

    Heard operator()(std::int64_t length_ms) {
        for (std::int64_t at_ms = 0; at_ms < length_ms; at_ms += 5) {
            sender_.deliver(at_ms * ms, [&](const Arrival& arrival) { put(arrival); });
            // The ticks of the two stages have nothing to do with one another.
            if (at_ms % 20 == 10) take(at_ms * ms);
            if (at_ms % 20 == 15) pull(at_ms * ms);
        }
        heard_.decoding = buffer_.figures();
        heard_.clocked = reader_.figures();
        return std::move(heard_);
    }

  private:
    void put(const Arrival& arrival) {
        const std::size_t size = impairment_.packet_ms * 8;
        std::array<std::int16_t, 480> samples;
        for (std::size_t n = 0; n < size; ++n) {
            samples[n] =
                static_cast<std::int16_t>(std::lround(amplitude * wave(arrival.number * size + n, 0)));
        }
        std::array<std::uint8_t, 480> bytes;
        const std::span payload = std::span(bytes).first(size);
        dsp::encode(dsp::Law::mu, std::span(samples).first(size), payload.data());
        const auto judged = sequence_.note(arrival.sequence);
        if (judged != rtp::Arrival::in_order && judged != rtp::Arrival::reordered) return;
        const auto timestamp = static_cast<std::uint32_t>(arrival.number * size);
        buffer_.put({0, arrival.marker, arrival.sequence, timestamp, 1}, payload, false, arrival.at_ns);
        take(arrival.at_ns);
    }

    void take(std::int64_t now_ns) {
        graph::AudioChunk chunk;
        while (buffer_.next(chunk, now_ns)) {
            heard_.first_stage_samples += chunk.samples.size();
            if (!graph::is_heard(chunk.origin)) heard_.made_up_samples += chunk.samples.size();
            if (heard_.first_heard == 0 && chunk.origin == Origin::received) {
                heard_.first_heard = heard_.first_stage_samples - chunk.samples.size();
            }
            reader_.put(chunk.samples, chunk.origin, now_ns);
        }
    }

    void pull(std::int64_t now_ns) {
        std::array<std::int16_t, frame_samples> frame;
        reader_.pull(frame);
        for (const std::int16_t sample : frame) {
            heard_.largest_jump = std::max(heard_.largest_jump, std::abs(sample - last_));
            last_ = sample;
        }
        ++heard_.frames;
        if (is_clean(frame)) ++heard_.clean_frames;
        // Both stages keep the order and, but for what the second corrects, the length of what was said.
        const double said_samples =
            static_cast<double>(heard_.first_stage_samples - heard_.first_heard) - reader_.depth_samples();
        const double said_ns = said_samples * 125'000 / (1 + impairment_.drift_ppm / 1e6);
        const double quickest_ms = impairment_.packet_ms + impairment_.base_ms - impairment_.jitter_ms;
        if (now_ns > 10'000 * ms) {
            heard_.delays_ms.push_back(
                static_cast<float>((static_cast<double>(now_ns) - said_ns) / 1e6 - quickest_ms));
        }
    }

    /// True if a frame holds the sine in its right size, and hardly anything else: least squares.
    static bool is_clean(const std::array<std::int16_t, frame_samples>& frame) {
        double xs = 0, xc = 0, ss = 0, cc = 0, sc = 0;
        for (std::size_t n = 0; n < frame_samples; ++n) {
            const double sine = wave(n, 0);
            const double cosine = wave(n, 0.25);
            xs += frame[n] * sine;
            xc += frame[n] * cosine;
            ss += sine * sine;
            cc += cosine * cosine;
            sc += sine * cosine;
        }
        const double scale = ss * cc - sc * sc;
        const double a = (xs * cc - xc * sc) / scale;
        const double b = (xc * ss - xs * sc) / scale;
        const double rest = std::pow(tests::rms(frame), 2) - (a * xs + b * xc) / frame_samples;
        const double size = std::hypot(a, b);
        const double db = 10 * std::log10(size * size / 2 / std::max(rest, 1.0));
        return db > 30 && std::abs(20 * std::log10(size / amplitude)) < 0.5;
    }

    Impairment impairment_;
    tests::ImpairedSender sender_;
    rtp::SequenceTracker sequence_;
    std::unique_ptr<codec::Decoder> decoder_;
    graph::JitterBuffer buffer_;
    graph::PlayoutBuffer reader_{8000};
    std::int16_t last_ = 0;
    Heard heard_;
};

void tell(Heard& heard) {
    MESSAGE("frames " << heard.frames << ", clean " << heard.clean_share() << ", first stage "
                      << heard.first_stage_samples << ", made up " << heard.made_up_samples << ", wait "
                      << heard.decoding.wait_ms << " ms, late " << heard.decoding.late << ", dry "
                      << heard.clocked.concealed_samples << ", inserted " << heard.clocked.inserted_samples
                      << ", removed " << heard.clocked.removed_samples << ", overflowed "
                      << heard.clocked.overflowed_samples << ", jump " << heard.largest_jump
                      << ", added delay p50 " << heard.delay_ms(0.5) << " p99 " << heard.delay_ms(0.99)
                      << " max " << heard.delay_ms(1));
}

}  // namespace

TEST_CASE("an hour behind a bad network with a drifting clock is heard on an unbroken clock") {
    Impairment impairment{.loss = 0.05, .jitter_ms = 40, .duplication = 0.01};
    for (const double drift_ppm : {200.0, -200.0}) {
        impairment.drift_ppm = drift_ppm;
        CAPTURE(drift_ppm);
        Heard heard = Run(impairment, 7)(hour_ms);
        tell(heard);
        CHECK(heard.first_stage_samples ==
              doctest::Approx(8.0 * hour_ms * (1 + drift_ppm / 1e6)).epsilon(2e-5));
        // A loss spoils two frames of the consumer's clock, unless it happens to hit its bounds.
        CHECK(heard.clean_share() > 0.89);
        CHECK(heard.decoding.late < 100);
        CHECK(heard.clocked.concealed_samples < 0.005 * 8 * hour_ms);
        CHECK(heard.clocked.overflowed_samples == 0);
        CHECK(heard.largest_jump < 1.25 * steepest);
        // The packets themselves take up to 80 ms longer than the quickest.
        CHECK(heard.delay_ms(0.5) < 120);
        CHECK(heard.delay_ms(0.99) < 130);
        CHECK(heard.delay_ms(1) < 180);
    }
}

TEST_CASE("an hour with a drifting clock on a good network is heard all but untouched") {
    for (const double drift_ppm : {200.0, -200.0, 0.0}) {
        CAPTURE(drift_ppm);
        Heard heard = Run({.drift_ppm = drift_ppm}, 7)(drift_ppm == 0 ? hour_ms / 6 : hour_ms);
        tell(heard);
        CHECK(heard.clean_share() > 0.9995);
        CHECK(heard.clocked.concealed_samples < 8000);
        CHECK(heard.largest_jump < 1.05 * steepest);
        CHECK(heard.delay_ms(0.99) < 30);
        CHECK(heard.delay_ms(1) < 35);
    }
}

TEST_CASE("a sender that sends nothing in its pauses is heard whole, at the right time") {
    Impairment impairment{.jitter_ms = 15, .drift_ppm = 200};
    impairment.talks = [](double at_s) { return std::fmod(at_s, 2.1) < 1.3; };
    Heard heard = Run(impairment, 3)(600'000);
    tell(heard);
    CHECK(heard.first_stage_samples == doctest::Approx(8.0 * 600'000).epsilon(5e-4));
    CHECK(heard.decoding.late < 30);
    CHECK(heard.clean_share() > 1.3 / 2.1 - 0.06);
    CHECK(heard.delay_ms(0.99) < 120);
    CHECK(heard.largest_jump < 1.25 * steepest);
}

TEST_CASE("stalls, bursts of loss and long packets leave the clock unbroken and the delay bounded") {
    for (const std::uint32_t packet_ms : {10U, 20U, 30U, 60U}) {
        CAPTURE(packet_ms);
        Heard heard =
            Run({.loss = 0.02, .burst = 0.7, .jitter_ms = 30, .spikes = 0.01, .packet_ms = packet_ms},
                11)(600'000);
        tell(heard);
        CHECK(heard.first_stage_samples == doctest::Approx(8.0 * 600'000).epsilon(5e-4));
        CHECK(heard.delay_ms(0.5) < 200);
        CHECK(heard.delay_ms(1) < 420);
        CHECK(heard.clean_share() > 0.7);
        CHECK(heard.largest_jump < 1.3 * steepest);
    }
}
