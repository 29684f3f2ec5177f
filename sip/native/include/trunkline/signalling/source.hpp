#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "trunkline/signalling/flow.hpp"

namespace trunkline::signalling {

/// An IP address, or the /64 network of an IPv6 address; what is neither is one and the same.
///
/// An IPv4-mapped IPv6 address is the IPv4 address. Addresses of links differ by their zones.
class Source {
  public:
    Source() = default;

    /// The address of an endpoint, without its port.
    static Source host_of(const Endpoint& endpoint);

    /// What is judged as one: an IPv4 address, or all of an IPv6 network of 64 bits.
    Source judged() const;

    /// Literal of the address, or of the network with `/64`.
    std::string text() const;

    bool operator==(const Source&) const = default;

    struct Hash {
        std::size_t operator()(const Source& source) const {
            return std::hash<std::string_view>{}({source.bytes_.data(), source.bytes_.size()});
        }
    };

  private:
    enum Sort : char { none, four, six, network };

    static constexpr std::size_t zone_at = 16, sort_at = 20;

    Sort sort() const { return static_cast<Sort>(bytes_[sort_at]); }

    /// 16 bytes of address, 4 of the zone, and the sort.
    std::array<char, 21> bytes_{};
};

}  // namespace trunkline::signalling
