#pragma once

#include <doctest/doctest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trunkline/tls/client.hpp"

namespace trunkline::tests {

inline const std::string certificate = std::string(TRUNKLINE_VECTORS) + "/tls/cert.pem";

/// The server's end of TLS, over bytes that the test carries.
class TlsServer {
  public:
    explicit TlsServer(int most = TLS1_3_VERSION) : context_(SSL_CTX_new(TLS_server_method())) {
        const std::string key = std::string(TRUNKLINE_VECTORS) + "/tls/key.pem";
        REQUIRE(SSL_CTX_use_certificate_file(context_, certificate.c_str(), SSL_FILETYPE_PEM) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) == 1);
        SSL_CTX_set_max_proto_version(context_, most);
        ssl = SSL_new(context_);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_accept_state(ssl);
    }
    TlsServer(const TlsServer&) = delete;
    TlsServer& operator=(const TlsServer&) = delete;
    ~TlsServer() {
        SSL_free(ssl);
        SSL_CTX_free(context_);
    }

    /// Take bytes of the client; what it said.
    std::string receive(std::span<const std::uint8_t> bytes) {
        if (!bytes.empty()) BIO_write(SSL_get_rbio(ssl), bytes.data(), static_cast<int>(bytes.size()));
        std::string said;
        char room[4096];
        for (int size = 0; (size = SSL_read(ssl, room, sizeof room)) > 0;)
            said.append(room, static_cast<std::size_t>(size));
        return said;
    }

    void say(std::string_view text) {
        REQUIRE(SSL_write(ssl, text.data(), static_cast<int>(text.size())) > 0);
    }

    /// What it has to send.
    std::vector<std::uint8_t> output() {
        std::vector<std::uint8_t> bytes(BIO_ctrl_pending(SSL_get_wbio(ssl)));
        if (!bytes.empty()) BIO_read(SSL_get_wbio(ssl), bytes.data(), static_cast<int>(bytes.size()));
        return bytes;
    }

    SSL* ssl;

  private:
    SSL_CTX* context_;
};

inline std::vector<std::uint8_t> take_output(tls::Client& client) {
    const auto output = client.output();
    std::vector<std::uint8_t> bytes(output.begin(), output.end());
    client.sent(bytes.size());
    return bytes;
}

/// All that the server has said.
inline std::string read_all(tls::Client& client) {
    std::string said;
    std::uint8_t room[tls::Client::max_record_bytes];
    while (const std::size_t size = client.read(room))
        said.append(reinterpret_cast<const char*>(room), size);
    return said;
}

/// Carry bytes both ways until the client is open, or has failed.
inline void shake_hands(tls::Client& client, TlsServer& server) {
    for (int turn = 0; turn < 10 && client.state() == tls::State::connecting; ++turn) {
        server.receive(take_output(client));
        client.receive(server.output());
    }
    server.receive(take_output(client));
}

}  // namespace trunkline::tests
