#include "trunkline/dsp/dtmf_detector.hpp"

#include <algorithm>
#include <new>

#if TRUNKLINE_HAVE_SPANDSP
#include <spandsp.h>
#endif

namespace trunkline::dsp {

namespace {

/// A key is told two blocks of 102 samples after it went down, and as much after it went up.
constexpr std::uint32_t shortest_ms = 40;
/// The same key again this soon is the one before, after an interruption that Q.24 has receivers pass over.
constexpr std::uint32_t interruption_ms = 30;

}  // namespace

#if TRUNKLINE_HAVE_SPANDSP

bool DtmfDetector::available() {
    return true;
}

DtmfDetector::DtmfDetector() : state_(dtmf_rx_init(nullptr, nullptr, nullptr)) {
    if (state_ == nullptr) throw std::bad_alloc();
    const auto told = [](void* self, int code, int, int) {
        static_cast<DtmfDetector*>(self)->report(static_cast<char>(code));
    };
    dtmf_rx_set_realtime_callback(state_, told, this);
}

DtmfDetector::~DtmfDetector() {
    dtmf_rx_free(state_);
}

std::span<const DtmfDetector::Change> DtmfDetector::frame(DetectorFrame frame) {
    count_ = 0;
    lasting_ms_ += detector_frame_ms;
    if (key_ != 0 && !heard_ && (released_ms_ += detector_frame_ms) > interruption_ms) release();
    (void)dtmf_rx(state_, frame.data(), static_cast<int>(frame.size()));
    return std::span(changes_).first(count_);
}

#else

bool DtmfDetector::available() {
    return false;
}

DtmfDetector::DtmfDetector() = default;
DtmfDetector::~DtmfDetector() = default;

std::span<const DtmfDetector::Change> DtmfDetector::frame(DetectorFrame) {
    return {};
}

#endif

void DtmfDetector::report(char key) {
    heard_ = key != 0;
    released_ms_ = 0;
    // Whether it is over, the next frames tell.
    if (!heard_ || key == key_) return;
    if (key_ != 0) release();
    if (count_ == changes_.size()) return;
    key_ = key;
    lasting_ms_ = 0;
    changes_[count_++] = {key_, true, 0};
}

void DtmfDetector::release() {
    const std::uint32_t heard_ms = lasting_ms_ - std::min(lasting_ms_, released_ms_);
    if (count_ != changes_.size()) changes_[count_++] = {key_, false, std::max(heard_ms, shortest_ms)};
    key_ = 0;
}

}  // namespace trunkline::dsp
