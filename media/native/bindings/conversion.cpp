// Conversion of continuous audio between the formats of agents.

#include "conversion.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "trunkline/dsp/resampler.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using Format = std::pair<std::string, std::uint32_t>;

graph::AudioFormat any_format_of(const Format& format) {
    graph::AudioFormat made = format_of(format.first, 8000);
    made.rate_hz = format.second;
    if (!dsp::can_resample(made.rate_hz, made.rate_hz))
        throw std::invalid_argument("the rate is out of range");
    return made;
}

nb::bytes bytes_of(const std::vector<std::uint8_t>& bytes) {
    return nb::bytes(bytes.data(), bytes.size());
}

/// Run `work` with the converter; a long piece of audio must not hold up other threads of Python.
template <typename Work>
nb::bytes converted(ConverterHolder& holder, Work work) {
    std::vector<std::uint8_t> made;
    {
        const nb::gil_scoped_release unlocked;
        made = work(*holder.converter);
    }
    return bytes_of(made);
}

std::span<const std::uint8_t> samples_of(const ConverterHolder& holder, const nb::bytes& audio) {
    if (!holder.converter->unchanged() && audio.size() % holder.converter->sample_bytes() != 0) {
        throw std::invalid_argument("the audio ends within a sample");
    }
    return octets_of(audio);
}

}  // namespace

void bind_conversion(nb::module_& module) {
    nb::class_<ConverterHolder>(module, "AudioConverter")
        .def("__init__",
             [](ConverterHolder* holder, const Format& source, const Format& target) {
                 auto made =
                     std::make_shared<graph::AudioConverter>(any_format_of(source), any_format_of(target));
                 new (holder) ConverterHolder{std::move(made)};
             })
        .def_prop_ro("sample_bytes", [](ConverterHolder& holder) { return holder.converter->sample_bytes(); })
        .def_prop_ro("unchanged", [](ConverterHolder& holder) { return holder.converter->unchanged(); })
        .def("convert",
             [](ConverterHolder& holder, const nb::bytes& audio) {
                 const auto samples = samples_of(holder, audio);
                 return converted(holder, [samples](auto& converter) { return converter.convert(samples); });
             })
        .def("flush",
             [](ConverterHolder& holder) {
                 return converted(holder, [](auto& converter) { return converter.flush(); });
             })
        .def("whole",
             [](ConverterHolder& holder, const nb::bytes& audio) {
                 const auto samples = samples_of(holder, audio);
                 return converted(holder, [samples](auto& converter) { return converter.whole(samples); });
             })
        .def("reset", [](ConverterHolder& holder) { holder.converter->reset(); });
}

}  // namespace trunkline::bindings
