#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trunkline/dsp/resampler.hpp"
#include "trunkline/graph/playout_queue.hpp"

namespace trunkline::graph {

/// Converts continuous audio in pieces, as if it were one piece.
///
/// The filter goes on from piece to piece: so the joints cannot be heard, and the last few milliseconds
/// always wait for the audio after them. Where they were not waited for, it begins anew, in the audio before.
class AudioConverter {
  public:
    /// Of any rate that `dsp::can_resample`; throws `std::invalid_argument` for others.
    AudioConverter(AudioFormat from, AudioFormat to);

    /// Size of a sample that goes in.
    std::uint32_t sample_bytes() const { return from_.sample_bytes(); }

    /// True if both formats are the same.
    bool unchanged() const { return from_.encoding == to_.encoding && !resampler_; }

    /// Convert whole samples; the end of them may wait.
    std::vector<std::uint8_t> convert(std::span<const std::uint8_t> audio);

    /// Convert what waits without waiting for more; more may still follow.
    std::vector<std::uint8_t> flush();

    /// Convert a complete piece, with the audio that waited before it.
    std::vector<std::uint8_t> whole(std::span<const std::uint8_t> audio);

    /// Drop what waits, and the audio around it.
    void reset();

  private:
    using Samples = std::vector<std::int16_t>;

    Samples decoded(std::span<const std::uint8_t> audio) const;
    std::vector<std::uint8_t> encoded(std::span<const std::int16_t> samples) const;
    void feed(std::span<const std::int16_t> samples, Samples& out);
    void filter(std::span<const std::int16_t> samples, Samples& out);
    Samples rest();

    AudioFormat from_;
    AudioFormat to_;
    std::optional<dsp::Resampler> resampler_;  ///< Only between different rates.
    std::size_t step_in_;                      ///< Smallest counts of samples of equal duration
    std::size_t step_out_;                     ///< at both rates.
    std::size_t context_;                      ///< Samples that the filter begins anew with, whole steps.
    std::size_t least_;                        ///< Samples that are converted at a time, at least.
    Samples waiting_;                          ///< Fewer than those.
    Samples before_;                           ///< The last samples that were converted.
    bool continues_ = false;                   ///< The filter is in the midst of the audio. Since it began:
    std::size_t taken_ = 0;                    ///< samples that went in,
    std::size_t made_ = 0;                     ///< samples that came out,
    std::size_t skipped_ = 0;                  ///< samples still to come of the audio before.
};

}  // namespace trunkline::graph
