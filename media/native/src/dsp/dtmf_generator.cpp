#include "trunkline/dsp/dtmf_generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace trunkline::dsp {

namespace {

constexpr std::string_view rows = "123A456B789C*0#D";
constexpr std::array<double, 4> low_hz = {697, 770, 852, 941};
constexpr std::array<double, 4> high_hz = {1209, 1336, 1477, 1633};
/// A sine of 0 dBm0 peaks 3.17 dB below full scale.
constexpr double peak_0_dbm0 = 22'800;
constexpr double low_gain = 0.316;
constexpr double high_gain = 0.398;
constexpr std::uint32_t edge_ms = 2;
/// Receivers take a tone of this length for a key, and silence of this length for its end (ITU-T Q.24).
constexpr std::uint32_t heard_ms = 40;
constexpr std::size_t table_size = 1024;

std::array<float, table_size> make_sine() {
    std::array<float, table_size> table{};
    for (std::size_t n = 0; n < table_size; ++n) {
        table[n] = static_cast<float>(
            std::sin(2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(table_size)));
    }
    return table;
}

const std::array<float, table_size> sine = make_sine();

float sine_at(std::uint32_t phase) {
    return sine[phase >> 22];
}

std::uint32_t step_of(double frequency_hz, std::uint32_t rate_hz) {
    return static_cast<std::uint32_t>(frequency_hz / rate_hz * 4294967296.0);
}

std::size_t place_of(char key) {
    return rows.find(key >= 'a' && key <= 'd' ? static_cast<char>(key - 'a' + 'A') : key);
}

}  // namespace

void DtmfGenerator::start(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms,
                          std::uint32_t rate_hz) {
    digits_ = digits;
    rate_hz_ = rate_hz;
    press_samples_ = duration_ms * (rate_hz / 1000);
    gap_samples_ = gap_ms * (rate_hz / 1000);
    gap_next_ = false;
    left_ = 0;
    next_key();
}

void DtmfGenerator::hold(char key, std::uint32_t rate_hz) {
    stop();
    rate_hz_ = rate_hz;
    if (place_of(key) == std::string_view::npos) return;
    gap_samples_ = heard_ms * (rate_hz / 1000);
    gap_next_ = true;
    press(key, endless);
}

void DtmfGenerator::release_after(std::uint32_t duration_ms) {
    if (!sounding()) return;
    const std::uint32_t samples = duration_ms * (rate_hz_ / 1000);
    // One sample at least, so that the falling edge is heard and not a click.
    left_ = samples > played_ ? samples - played_ : edge_ms * (rate_hz_ / 1000);
}

void DtmfGenerator::resume() {
    if (!sounding()) return;
    if (played_ >= heard_ms * (rate_hz_ / 1000)) {
        left_ = 0;
        next_key();
        return;
    }
    if (left_ != endless) left_ += played_;
    played_ = 0;
}

bool DtmfGenerator::pull(std::span<std::int16_t> out) {
    bool any = false;
    for (std::int16_t& sample : out) {
        if (left_ == 0) next_key();
        any = any || sounding();
        sample = left_ == 0 ? std::int16_t{0} : next_sample();
    }
    // So that nobody waits a frame for an end that has come.
    if (left_ == 0) next_key();
    return any;
}

void DtmfGenerator::next_key() {
    if (gap_next_) {
        gap_next_ = false;
        rest(gap_samples_);
        if (left_ != 0) return;
    }
    while (!digits_.empty()) {
        const char key = digits_.front();
        digits_.remove_prefix(1);
        if (key == 'w' || key == 'W') {
            rest((key == 'w' ? 500 : 1000) * (rate_hz_ / 1000));
            return;
        }
        if (place_of(key) == std::string_view::npos) continue;
        press(key, press_samples_);
        gap_next_ = true;
        return;
    }
}

void DtmfGenerator::press(char key, std::uint32_t samples) {
    const std::size_t place = place_of(key);
    step_[0] = step_of(low_hz[place / 4], rate_hz_);
    step_[1] = step_of(high_hz[place % 4], rate_hz_);
    phase_[0] = phase_[1] = 0;
    played_ = 0;
    left_ = samples;
}

void DtmfGenerator::rest(std::uint32_t samples) {
    step_[0] = step_[1] = 0;
    played_ = 0;
    left_ = samples;
}

std::int16_t DtmfGenerator::next_sample() {
    const std::uint32_t edge_samples = edge_ms * (rate_hz_ / 1000);
    const float edge =
        static_cast<float>(std::min({played_, left_, edge_samples})) / static_cast<float>(edge_samples);
    ++played_;
    if (left_ != endless) --left_;
    if (step_[0] == 0) return 0;
    const double value = peak_0_dbm0 * (low_gain * sine_at(phase_[0]) + high_gain * sine_at(phase_[1]));
    phase_[0] += step_[0];
    phase_[1] += step_[1];
    return static_cast<std::int16_t>(std::lrint(value * edge));
}

}  // namespace trunkline::dsp
