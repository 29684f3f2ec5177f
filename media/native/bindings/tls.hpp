#pragma once

#include <memory>

#include "trunkline/tls/client.hpp"

namespace trunkline::bindings {

/// The client's end of a TLS connection, until an engine takes it over.
struct TlsHolder {
    std::unique_ptr<tls::Client> client;
};

}  // namespace trunkline::bindings
