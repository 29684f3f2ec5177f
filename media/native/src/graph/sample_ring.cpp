#include "trunkline/graph/sample_ring.hpp"

#include <algorithm>

namespace trunkline::graph {

void SampleRing::reset(std::uint32_t timestamp) {
    samples_.fill(absent);
    position_ = end_ = gap_ = timestamp;
}

SampleRing::Stored SampleRing::write(std::uint32_t timestamp, std::span<const std::int16_t> samples) {
    auto offset = static_cast<std::int32_t>(timestamp - position_);
    const auto size = static_cast<std::int32_t>(samples.size());
    if (offset < -static_cast<std::int32_t>(capacity_samples)) return Stored::too_far;
    if (offset + size <= 0) return Stored::late;
    if (offset + size > static_cast<std::int32_t>(capacity_samples)) return Stored::too_far;
    if (offset < 0) {
        samples = samples.subspan(static_cast<std::size_t>(-offset));
        timestamp = position_;
        offset = 0;
    }
    for (std::size_t n = 0; n < samples.size(); ++n) {
        samples_[(timestamp + n) & mask] = std::max<std::int16_t>(samples[n], absent + 1);
    }
    const auto end = timestamp + static_cast<std::uint32_t>(samples.size());
    if (static_cast<std::int32_t>(end - end_) > 0) end_ = end;
    return Stored::stored;
}

std::uint32_t SampleRing::read(std::span<std::int16_t> out) {
    std::uint32_t present = 0;
    for (std::int16_t& sample : out) {
        std::int16_t& place = samples_[position_ & mask];
        const bool there = place != absent;
        present += there ? 1 : 0;
        sample = there ? place : std::int16_t{0};
        place = absent;
        ++position_;
    }
    settle();
    return present;
}

void SampleRing::skip(std::uint32_t samples) {
    for (std::uint32_t n = 0; n < samples; ++n) {
        samples_[position_++ & mask] = absent;
    }
    settle();
}

void SampleRing::settle() {
    if (static_cast<std::int32_t>(gap_ - position_) < 0) gap_ = position_;
    // Reading past the newest audio takes the end along.
    if (ahead() < 0) end_ = position_;
}

std::uint32_t SampleRing::contiguous() {
    while (gap_ != end_ && samples_[gap_ & mask] != absent) {
        ++gap_;
    }
    return gap_ - position_;
}

}  // namespace trunkline::graph
