// MediaSettings: what SDP agreed, checked as it is made.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "trunkline/engine/stream.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::MediaSettings;

/// Where packets go: an IP literal and a port.
using Destination = std::tuple<std::string, std::uint16_t>;

io::Address address_of(const Destination& destination) {
    const auto& [host, udp_port] = destination;
    const auto address = io::Address::parse(host, udp_port);
    if (!address) throw std::invalid_argument("the remote address must be an IP literal");
    return *address;
}

std::uint8_t payload_type_of(int payload_type) {
    if (payload_type < 0 || payload_type > 127) throw std::invalid_argument("payload types are 0 to 127");
    return static_cast<std::uint8_t>(payload_type);
}

/// A payload type, or none.
using Type = std::optional<int>;

std::optional<std::uint8_t> optional_type(Type payload_type) {
    if (!payload_type) return std::nullopt;
    return payload_type_of(*payload_type);
}

/// Bit rate, FEC, DTX and highest sampling rate of the far end.
using Encoding = std::tuple<std::uint32_t, bool, bool, std::uint32_t>;

/// Suite, and key with salt.
using Key = std::optional<std::tuple<std::string, nb::bytes>>;

std::optional<engine::SrtpKey> srtp_key_of(const Key& given) {
    if (!given) return std::nullopt;
    const auto& [suite, key] = *given;
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

codec::Format format_of(const std::string& name, std::uint32_t clock_hz) {
    const codec::Format format{codec_of(name), clock_hz};
    if (!codec::supported(format)) {
        throw std::invalid_argument("the engine has no " + name + "/" + std::to_string(clock_hz));
    }
    return format;
}

/// See media/_engine.pyi for the order.
void make_settings(MediaSettings* place, const Destination& remote,
                   const std::optional<Destination>& rtcp_remote, const std::string& codec,
                   std::uint32_t clock_hz, int payload_type, Type receive_type, std::uint32_t ptime_ms,
                   bool send, bool receive, Type dtmf_send_type, Type dtmf_receive_type, bool dtmf_tones,
                   Type noise_type, const Encoding& encoding, const Key& srtp_send, const Key& srtp_receive) {
    MediaSettings settings;
    settings.remote = address_of(remote);
    if (rtcp_remote) settings.rtcp_remote = address_of(*rtcp_remote);
    settings.format = format_of(codec, clock_hz);
    settings.payload_type = payload_type_of(payload_type);
    settings.receive_type = optional_type(receive_type);
    settings.ptime_ms = ptime_ms;
    settings.send = send;
    settings.receive = receive;
    settings.dtmf_send_type = optional_type(dtmf_send_type);
    settings.dtmf_receive_type = optional_type(dtmf_receive_type ? dtmf_receive_type : dtmf_send_type);
    settings.dtmf_tones = dtmf_tones;
    settings.noise_type = optional_type(noise_type);
    codec::EncoderOptions& encoder = settings.encoder;
    std::tie(encoder.bitrate_bps, encoder.fec, encoder.dtx, encoder.max_playback_hz) = encoding;
    settings.srtp_send = srtp_key_of(srtp_send);
    settings.srtp_receive = srtp_key_of(srtp_receive);
    new (place) MediaSettings(std::move(settings));
}

}  // namespace

void bind_settings(nb::module_& module) {
    module.def("srtp_ready", &engine::srtp_ready);
    nb::class_<MediaSettings>(module, "MediaSettings")
        .def("__init__", &make_settings)
        .def_prop_ro("host", [](const MediaSettings& settings) { return settings.remote.host(); })
        .def_prop_ro("udp_port", [](const MediaSettings& settings) { return settings.remote.udp_port(); })
        .def_prop_ro("payload_type", [](const MediaSettings& settings) { return settings.payload_type; })
        .def_prop_ro("dtmf_types",
                     [](const MediaSettings& settings) {
                         return nb::make_tuple(settings.dtmf_send_type, settings.dtmf_receive_type);
                     })
        .def_ro("ptime_ms", &MediaSettings::ptime_ms)
        .def_ro("send", &MediaSettings::send)
        .def_ro("receive", &MediaSettings::receive);
}

}  // namespace trunkline::bindings
