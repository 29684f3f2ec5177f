#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace trunkline::graph {

/// Variation of an agent's arrivals: how long its utterances must wait before they play, so that none has a
/// gap.
///
/// The lead of audio is how much sooner it comes than the beginning of its utterance would have it; its lag
/// is how far it stays behind the greatest lead before it. The prebuffer is full until a window of audio has
/// come without a gap, and again after each gap. Then it is the longest lag of the last one to two windows,
/// with a margin. A gap doubles the window, so that an agent which stalls now and then is trusted ever more
/// slowly.
class PrebufferEstimator {
  public:
    static constexpr std::int64_t full_ns = 60'000'000;
    static constexpr std::int64_t least_ns = 10'000'000;
    static constexpr std::int64_t margin_ns = 5'000'000;
    /// Lags beyond this are pauses: no prebuffer would hide them.
    static constexpr std::int64_t max_lag_ns = 100'000'000;
    /// Audio that comes so soon after other audio was sent with it: it leads by what was sent before it.
    static constexpr std::int64_t burst_ns = 5'000'000;
    static constexpr std::int64_t first_window_ns = 2'000'000'000;
    static constexpr std::int64_t longest_window_ns = 64'000'000'000;

    /// Begin an utterance, whose first audio comes now.
    void begin() { greatest_lead_ns_ = 0; }

    /// Process audio that came in time, `since_ns` after the audio before it.
    void note(std::int64_t lead_ns, std::int64_t since_ns);

    /// Process audio that came too late to follow what was played before it.
    void note_gap(std::int64_t lead_ns);

    /// Time from the arrival of an utterance's beginning until it plays.
    std::int64_t prebuffer_ns() const {
        return steady_ ? std::clamp(longest_lag_ns() + margin_ns, least_ns, full_ns) : full_ns;
    }

    /// Part of it that is needed however much is queued: 0 while nothing lags.
    std::int64_t wait_ns() const { return longest_lag_ns() > 0 ? longest_lag_ns() + margin_ns : 0; }

    /// Greatest lead of the utterance so far; at least 0, that of its beginning.
    std::int64_t greatest_lead_ns() const { return greatest_lead_ns_; }

    /// True if a whole window has come since the last gap.
    bool steady() const { return steady_; }

  private:
    /// Longest time between two arrivals that says anything about the time in between.
    static constexpr std::int64_t max_since_ns = 200'000'000;

    std::int64_t longest_lag_ns() const { return std::max(lags_ns_[0], lags_ns_[1]); }
    void note_lag(std::int64_t lead_ns);

    std::int64_t greatest_lead_ns_ = 0;
    std::array<std::int64_t, 2> lags_ns_{};  ///< Longest of this window and of the one before.
    std::int64_t window_ns_ = first_window_ns;
    std::int64_t seen_ns_ = 0;  ///< Of this window.
    bool steady_ = false;
};

}  // namespace trunkline::graph
