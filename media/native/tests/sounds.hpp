#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "recorded.hpp"
#include "support.hpp"
#include "trunkline/dsp/frames.hpp"
#include "trunkline/dsp/g711.hpp"

namespace trunkline::tests {

/// Audio at 8 kHz for detectors, put together chunk by chunk.
class Sounds {
  public:
    static constexpr double rate_hz = 8000;

    Sounds& silence(int for_ms) {
        samples.resize(samples.size() + static_cast<std::size_t>(8 * for_ms));
        return *this;
    }

    /// The sum of tones, each at this level (a full-scale sine has 3.14 dBm0).
    Sounds& tones(const std::vector<double>& freqs_hz, int for_ms, double level_dbm0 = -12) {
        return tones_at(freqs_hz, std::vector<double>(freqs_hz.size(), level_dbm0), for_ms);
    }

    Sounds& tones_at(const std::vector<double>& freqs_hz, const std::vector<double>& levels_dbm0,
                     int for_ms) {
        const std::size_t start = samples.size();
        silence(for_ms);
        for (std::size_t k = 0; k < freqs_hz.size(); ++k) {
            const double amplitude = 32767 * std::pow(10, (levels_dbm0[k] - 3.14) / 20);
            for (std::size_t n = start; n < samples.size(); ++n) {
                const double phase =
                    2 * std::numbers::pi * freqs_hz[k] * static_cast<double>(n) / rate_hz + 0.4;
                samples[n] = clamped(samples[n] + amplitude * std::sin(phase));
            }
        }
        return *this;
    }

    /// A file of tests/vectors/audio.
    Sounds& speech(const std::string& name, double gain_db = 0) {
        std::ifstream in(std::string(TRUNKLINE_VECTORS) + "/audio/" + name + ".wav", std::ios::binary);
        const Played played = play_wav({std::istreambuf_iterator<char>(in), {}});
        if (played.format != 7 || played.rate_hz != 8000) throw std::runtime_error("not mu-law at 8 kHz");
        std::vector<std::int16_t> decoded(played.data.size());
        const auto* codes = reinterpret_cast<const std::uint8_t*>(played.data.data());
        dsp::decode(dsp::Law::mu, {codes, played.data.size()}, decoded.data());
        for (const std::int16_t sample : decoded) {
            samples.push_back(clamped(sample * std::pow(10, gain_db / 20)));
        }
        return *this;
    }

    /// White noise over all of it, at this level of its power below full scale.
    Sounds& noise(double level_db, unsigned seed = 1) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal(0, 32768 * std::pow(10, level_db / 20));
        for (std::int16_t& sample : samples) {
            sample = clamped(sample + normal(random));
        }
        return *this;
    }

    /// What G.711 makes of it.
    Sounds& coded(dsp::Law law = dsp::Law::mu) {
        std::vector<std::uint8_t> codes(samples.size());
        dsp::encode(law, samples, codes.data());
        dsp::decode(law, codes, samples.data());
        return *this;
    }

    /// Call `look(frame, at_ms)` with every 10 ms, at_ms being its end.
    template <typename Look>
    void each_frame(Look look) const {
        int at_ms = 0;
        for (std::size_t n = 0; n + dsp::detector_frame_samples <= samples.size();
             n += dsp::detector_frame_samples) {
            at_ms += dsp::detector_frame_ms;
            look(dsp::DetectorFrame(samples.data() + n, dsp::detector_frame_samples), at_ms);
        }
    }

    std::vector<std::int16_t> samples;

  private:
    static std::int16_t clamped(double value) {
        return static_cast<std::int16_t>(std::lround(std::clamp(value, -32768.0, 32767.0)));
    }
};

}  // namespace trunkline::tests
