// Conversions of whole sounds, and codecs by themselves, for files, tests and tools; no stream is involved.

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/halfband.hpp"
#include "trunkline/dsp/pcm.hpp"
#include "trunkline/dsp/resampler.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

std::vector<std::int16_t> samples_of(const nb::bytes& pcm) {
    if (pcm.size() % 2 != 0) throw std::invalid_argument("the audio ends within a sample");
    std::vector<std::int16_t> samples(pcm.size() / 2);
    if (!samples.empty()) std::memcpy(samples.data(), pcm.c_str(), pcm.size());
    return samples;
}

nb::bytes bytes_of(std::span<const std::int16_t> samples) {
    return nb::bytes(samples.data(), samples.size_bytes());
}

std::span<const std::uint8_t> payload_of(const nb::bytes& payload) {
    return {reinterpret_cast<const std::uint8_t*>(payload.c_str()), payload.size()};
}

nb::bytes resample(const nb::bytes& pcm, std::uint32_t from_hz, std::uint32_t to_hz) {
    if (!dsp::can_resample(from_hz, to_hz)) {
        throw std::invalid_argument("the engine does not convert " + std::to_string(from_hz) + " to " +
                                    std::to_string(to_hz) + " Hz");
    }
    const std::vector<std::int16_t> in = samples_of(pcm);
    std::vector<std::int16_t> out;
    {
        const nb::gil_scoped_release unlocked;
        out = dsp::resample(in, from_hz, to_hz);
    }
    return bytes_of(out);
}

nb::bytes to_linear(const nb::bytes& data, const std::string& form_name, bool mixed) {
    const auto form = dsp::pcm_form(form_name);
    if (!form) throw std::invalid_argument("unknown form of samples: " + form_name);
    std::vector<std::int16_t> out;
    {
        const nb::gil_scoped_release unlocked;
        out = dsp::to_linear(*form, payload_of(data));
        if (mixed) out = dsp::mix_stereo(out);
    }
    return bytes_of(out);
}

std::invalid_argument refused(const std::string& name, std::uint32_t clock_hz) {
    return std::invalid_argument("the engine has no " + name + "/" + std::to_string(clock_hz));
}

/// A decoder whose packets come from Python.
class PacketDecoder {
  public:
    PacketDecoder(const std::string& name, std::uint32_t clock_hz)
        : decoder_(codec::make_decoder({codec_of(name), clock_hz})) {
        if (!decoder_) throw refused(name, clock_hz);
    }

    std::uint32_t rate_hz() const { return decoder_->format().rate_hz(); }

    nb::bytes decode(const nb::bytes& payload) {
        return first(decoder_->decode(payload_of(payload), samples_));
    }

    nb::bytes recover(const nb::bytes& following, std::uint32_t duration_ms) {
        return first(decoder_->recover(payload_of(following), lost(duration_ms)));
    }

    nb::bytes conceal(std::uint32_t duration_ms) {
        const std::span<std::int16_t> out = lost(duration_ms);
        decoder_->conceal(out);
        return bytes_of(out);
    }

    void reset() { decoder_->reset(); }

  private:
    nb::bytes first(std::uint32_t count) const { return bytes_of(std::span(samples_).first(count)); }

    std::span<std::int16_t> lost(std::uint32_t duration_ms) {
        if (duration_ms > codec::max_packet_ms) throw std::invalid_argument("a packet has at most 60 ms");
        return std::span(samples_).first(duration_ms * rate_hz() / 1000);
    }

    std::unique_ptr<codec::Decoder> decoder_;
    std::array<std::int16_t, codec::max_packet_samples> samples_{};
};

/// An encoder whose frames come from Python.
class FrameEncoder {
  public:
    FrameEncoder(const std::string& name, std::uint32_t clock_hz, const codec::EncoderOptions& options)
        : encoder_(codec::make_encoder({codec_of(name), clock_hz}, options)) {
        if (!encoder_) throw refused(name, clock_hz);
    }

    std::uint32_t rate_hz() const { return encoder_->format().rate_hz(); }

    nb::bytes encode(const nb::bytes& pcm) {
        const std::vector<std::int16_t> frame = samples_of(pcm);
        const std::size_t unit = rate_hz() / 100;
        if (frame.empty() || frame.size() % unit != 0 || frame.size() / unit > codec::max_packet_ms / 10) {
            throw std::invalid_argument("a frame has 10 to 60 ms in steps of 10");
        }
        const std::size_t size = encoder_->encode(frame, payload_);
        return nb::bytes(payload_.data(), size);
    }

    void reset() { encoder_->reset(); }

  private:
    std::unique_ptr<codec::Encoder> encoder_;
    std::array<std::uint8_t, codec::max_payload_bytes> payload_{};
};

/// Rate converter between codecs.
class RateConverter {
  public:
    RateConverter(std::uint32_t from_hz, std::uint32_t to_hz) : doubles_(to_hz > from_hz) {
        if (from_hz + to_hz != 24000 || (from_hz != 8000 && from_hz != 16000)) {
            throw std::invalid_argument("the rates must be 8000 and 16000");
        }
    }

    nb::bytes process(const nb::bytes& pcm) {
        const std::vector<std::int16_t> in = samples_of(pcm);
        if (in.size() > codec::max_packet_samples || in.size() % 2 != 0 ||
            (doubles_ && in.size() > dsp::Upsampler::max_block_samples)) {
            throw std::invalid_argument("a block has up to 60 ms and an even number of samples");
        }
        if (doubles_) {
            upsampler_.process(in, out_.data());
        } else {
            downsampler_.process(in, out_.data());
        }
        return bytes_of(std::span(out_).first(doubles_ ? 2 * in.size() : in.size() / 2));
    }

  private:
    bool doubles_;
    dsp::Upsampler upsampler_;
    dsp::Downsampler downsampler_;
    std::array<std::int16_t, codec::max_packet_samples> out_{};
};

std::unique_ptr<FrameEncoder> make_encoder(const std::string& name, std::uint32_t clock_hz,
                                           std::uint32_t bitrate_bps, bool fec, bool dtx,
                                           std::uint32_t expected_loss_pct, std::uint32_t max_playback_hz) {
    codec::EncoderOptions options;
    options.bitrate_bps = bitrate_bps;
    options.fec = fec;
    options.dtx = dtx;
    options.expected_loss_pct = expected_loss_pct;
    options.max_playback_hz = max_playback_hz;
    return std::make_unique<FrameEncoder>(name, clock_hz, options);
}

}  // namespace

codec::Codec codec_of(const std::string& name) {
    if (name == "PCMU") return codec::Codec::pcmu;
    if (name == "PCMA") return codec::Codec::pcma;
    if (name == "G722") return codec::Codec::g722;
    if (name == "L16") return codec::Codec::l16;
    if (name == "OPUS") return codec::Codec::opus;
    throw std::invalid_argument("unknown codec: " + name);
}

void bind_audio(nb::module_& module) {
    module.def("resample", &resample);
    module.def("to_linear", &to_linear);
    module.def("supports", [](const std::string& name, std::uint32_t clock_hz) {
        return codec::supported({codec_of(name), clock_hz});
    });
    nb::class_<PacketDecoder>(module, "Decoder")
        .def(nb::init<const std::string&, std::uint32_t>())
        .def_prop_ro("rate_hz", &PacketDecoder::rate_hz)
        .def("decode", &PacketDecoder::decode)
        .def("recover", &PacketDecoder::recover)
        .def("conceal", &PacketDecoder::conceal)
        .def("reset", &PacketDecoder::reset);
    nb::class_<RateConverter>(module, "RateConverter")
        .def(nb::init<std::uint32_t, std::uint32_t>())
        .def("process", &RateConverter::process);
    const codec::EncoderOptions defaults;
    nb::class_<FrameEncoder>(module, "Encoder")
        .def(nb::new_(&make_encoder), nb::arg("name"), nb::arg("clock_hz"),
             nb::arg("bitrate_bps") = defaults.bitrate_bps, nb::arg("fec") = defaults.fec,
             nb::arg("dtx") = defaults.dtx, nb::arg("expected_loss_pct") = defaults.expected_loss_pct,
             nb::arg("max_playback_hz") = defaults.max_playback_hz)
        .def_prop_ro("rate_hz", &FrameEncoder::rate_hz)
        .def("encode", &FrameEncoder::encode)
        .def("reset", &FrameEncoder::reset);
}

}  // namespace trunkline::bindings
