// MediaSettings: what SDP agreed, field by field, checked as it is set.

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "trunkline/engine/stream.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::MediaSettings;

io::Address address_of(const std::string& host, std::uint16_t udp_port) {
    const auto address = io::Address::parse(host, udp_port);
    if (!address) throw std::invalid_argument("the remote address must be an IP literal");
    return *address;
}

std::uint8_t payload_type_of(int payload_type) {
    if (payload_type < 0 || payload_type > 127) throw std::invalid_argument("payload types are 0 to 127");
    return static_cast<std::uint8_t>(payload_type);
}

/// A negative payload type stands for none.
std::optional<std::uint8_t> optional_type(int payload_type) {
    if (payload_type < 0) return std::nullopt;
    return payload_type_of(payload_type);
}

int number_of(const std::optional<std::uint8_t>& payload_type) {
    return payload_type ? *payload_type : -1;
}

engine::SrtpKey srtp_key_of(const std::string& suite, const nb::bytes& key) {
    engine::SrtpKey made;
    std::size_t size_bytes = 30;
    if (suite == "AES_CM_128_HMAC_SHA1_80") {
        made.suite = engine::SrtpSuite::aes_cm_128_hmac_sha1_80;
    } else if (suite == "AES_CM_128_HMAC_SHA1_32") {
        made.suite = engine::SrtpSuite::aes_cm_128_hmac_sha1_32;
    } else if (suite == "AES_256_CM_HMAC_SHA1_80") {
        made.suite = engine::SrtpSuite::aes_256_cm_hmac_sha1_80;
        size_bytes = 46;
    } else if (suite == "AES_256_CM_HMAC_SHA1_32") {
        made.suite = engine::SrtpSuite::aes_256_cm_hmac_sha1_32;
        size_bytes = 46;
    } else {
        throw std::invalid_argument("unknown SRTP suite: " + suite);
    }
    if (key.size() != size_bytes) throw std::invalid_argument("the SRTP key has a wrong length");
    std::copy_n(reinterpret_cast<const std::uint8_t*>(key.c_str()), size_bytes, made.bytes.begin());
    return made;
}

void set_codec(MediaSettings& settings, const std::string& name, std::uint32_t clock_hz, int payload_type,
               int receive_type) {
    const codec::Format format{codec_of(name), clock_hz};
    if (!codec::supported(format)) {
        throw std::invalid_argument("the engine has no " + name + "/" + std::to_string(clock_hz));
    }
    settings.format = format;
    settings.payload_type = payload_type_of(payload_type);
    settings.receive_type = optional_type(receive_type);
}

}  // namespace

void bind_settings(nb::module_& module) {
    module.def("srtp_ready", &engine::srtp_ready);
    nb::class_<MediaSettings>(module, "MediaSettings")
        .def(nb::init<>())
        .def("set_remote", [](MediaSettings& settings, const std::string& host,
                              std::uint16_t udp_port) { settings.remote = address_of(host, udp_port); })
        .def("set_rtcp_remote",
             [](MediaSettings& settings, const std::string& host, std::uint16_t udp_port) {
                 settings.rtcp_remote = address_of(host, udp_port);
             })
        .def("set_codec", &set_codec)
        .def("set_encoder",
             [](MediaSettings& settings, std::uint32_t bitrate_bps, bool fec, bool dtx,
                std::uint32_t max_playback_hz) {
                 settings.encoder.bitrate_bps = bitrate_bps;
                 settings.encoder.fec = fec;
                 settings.encoder.dtx = dtx;
                 settings.encoder.max_playback_hz = max_playback_hz;
             })
        .def("set_dtmf",
             [](MediaSettings& settings, int send_type, int receive_type, bool tones) {
                 settings.dtmf_send_type = optional_type(send_type);
                 settings.dtmf_receive_type = optional_type(receive_type);
                 settings.dtmf_tones = tones;
             })
        .def("set_noise",
             [](MediaSettings& settings, int type) { settings.noise_type = optional_type(type); })
        .def("set_srtp_send", [](MediaSettings& settings, const std::string& suite,
                                 const nb::bytes& key) { settings.srtp_send = srtp_key_of(suite, key); })
        .def("set_srtp_receive",
             [](MediaSettings& settings, const std::string& suite, const nb::bytes& key) {
                 settings.srtp_receive = srtp_key_of(suite, key);
             })
        .def_prop_ro("host", [](const MediaSettings& settings) { return settings.remote.host(); })
        .def_prop_ro("udp_port", [](const MediaSettings& settings) { return settings.remote.udp_port(); })
        .def_prop_ro("payload_type", [](const MediaSettings& settings) { return settings.payload_type; })
        .def_prop_ro("dtmf_types",
                     [](const MediaSettings& settings) {
                         return nb::make_tuple(number_of(settings.dtmf_send_type),
                                               number_of(settings.dtmf_receive_type));
                     })
        .def_rw("ptime_ms", &MediaSettings::ptime_ms)
        .def_rw("send", &MediaSettings::send)
        .def_rw("receive", &MediaSettings::receive);
}

}  // namespace trunkline::bindings
