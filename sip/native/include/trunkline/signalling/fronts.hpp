#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trunkline/signalling/flow.hpp"

namespace trunkline::signalling {

/// The SIP proxies in front of this server, which name the source of each request in a field of theirs,
/// `X-Trunkline-Source: udp:198.51.100.7:5060`. From anybody else the field means nothing.
class Fronts {
  public:
    Fronts() = default;
    /// `networks` are CIDRs. Throws std::invalid_argument for other text.
    explicit Fronts(const std::vector<std::string>& networks);

    bool empty() const { return networks_.empty(); }
    bool contain(const Endpoint& remote) const;

    /// Where a message comes from: for one of a front what its field names, and otherwise `remote`.
    ///
    /// A front whose field cannot be read, or that sends several, names no address: nobody knows that source.
    Endpoint origin_of(std::string_view data, const Endpoint& remote) const;

  private:
    struct Network {
        Endpoint first;
        std::size_t bits = 0;

        bool contains(const Endpoint& remote) const;
    };

    std::vector<Network> networks_;
};

/// Endpoint that a value of the field names; nothing if it names none.
std::optional<Endpoint> read_origin(std::string_view value);

}  // namespace trunkline::signalling
