#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/dsp/frames.hpp"

struct dtmf_rx_state_s;

namespace trunkline::dsp {

/// Finds keys in audio (ITU-T Q.23, Q.24) by libspandsp.
class DtmfDetector {
  public:
    /// A key that went down or up.
    struct Change {
        char key = 0;
        bool down = false;
        std::uint32_t duration_ms = 0;  ///< When it went up: how long it was heard.
    };

    /// True if it was built in; without it nothing is ever found.
    static bool available();

    /// Memory is allocated here and never again.
    DtmfDetector();
    DtmfDetector(const DtmfDetector&) = delete;
    DtmfDetector& operator=(const DtmfDetector&) = delete;
    ~DtmfDetector();

    /// Process the next 10 ms; returns the changes, valid until the next call.
    std::span<const Change> frame(DetectorFrame frame);

    /// The key that is down, or 0.
    char key() const { return key_; }

  private:
    void report(char key);
    void release();

    dtmf_rx_state_s* state_ = nullptr;
    std::array<Change, 8> changes_{};
    std::size_t count_ = 0;
    char key_ = 0;
    bool heard_ = false;             ///< It is in the audio, or was a moment ago.
    std::uint32_t lasting_ms_ = 0;   ///< Since it went down.
    std::uint32_t released_ms_ = 0;  ///< Since it was heard last.
};

}  // namespace trunkline::dsp
