// RecordingOptions, checked as they are made.

#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "trunkline/engine/recording.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::RecordingOptions;

io::Encoding encoding_of(const std::string& name) {
    if (name == "wav") return io::Encoding::wav;
    if (name == "wav-mulaw") return io::Encoding::wav_mulaw;
    if (name == "ogg-opus") return io::Encoding::ogg_opus;
    throw std::invalid_argument("unknown encoding of recordings: " + name);
}

RecordingOptions make_options(const std::string& encoding, std::uint16_t channels, std::uint32_t rate_hz) {
    RecordingOptions options;
    options.layout = {encoding_of(encoding), channels, rate_hz};
    if (!io::supported(options.layout.encoding)) {
        throw std::invalid_argument("the engine was built without " + encoding);
    }
    if (channels != 1 && channels != 2) throw std::invalid_argument("a recording has 1 or 2 channels");
    if (rate_hz != 8000 && rate_hz != 16000) throw std::invalid_argument("the rate must be 8000 or 16000");
    return options;
}

}  // namespace

void bind_recording(nb::module_& module) {
    nb::class_<RecordingOptions>(module, "RecordingOptions")
        .def(nb::new_(&make_options))
        .def_rw("pause_as_silence", &RecordingOptions::pause_as_silence)
        .def_rw("max_duration_ms", &RecordingOptions::max_duration_ms)
        .def_rw("max_bytes", &RecordingOptions::max_bytes);
}

}  // namespace trunkline::bindings
