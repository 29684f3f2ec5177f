// The client's end of TLS: whom it trusts, and what it bears.

#include <doctest/doctest.h>
#include <openssl/err.h>

#include <stdexcept>
#include <string>

#include "tls_peer.hpp"

using namespace trunkline;
using tests::read_all;
using tests::take_output;
using tests::TlsServer;
using tls::Client;
using tls::Context;
using tls::State;

namespace {

const Context& trusting() {
    static const Context context(tests::certificate);
    return context;
}

}  // namespace

TEST_CASE("bytes go both ways, the host is named, and the end is told") {
    Client client(trusting(), "bot.test");
    TlsServer server;
    tests::shake_hands(client, server);
    REQUIRE(client.state() == State::open);
    CHECK(std::string(SSL_get_servername(server.ssl, TLSEXT_NAMETYPE_host_name)) == "bot.test");
    const std::string question(40'000, 'q');
    CHECK(client.write({reinterpret_cast<const std::uint8_t*>(question.data()), question.size()}));
    CHECK(server.receive(take_output(client)) == question);
    server.say("an answer");
    server.say(" in two records");
    const auto bytes = server.output();
    for (const std::uint8_t byte : bytes)
        client.receive({&byte, 1});
    CHECK(read_all(client) == "an answer in two records");
    client.close();
    client.close();
    server.receive(take_output(client));
    CHECK((SSL_get_shutdown(server.ssl) & SSL_RECEIVED_SHUTDOWN) != 0);
    SSL_shutdown(server.ssl);
    client.receive(server.output());
    CHECK(read_all(client).empty());
    CHECK(client.state() == State::ended);
}

TEST_CASE("an address is checked as one") {
    Client client(trusting(), "127.0.0.1");
    TlsServer server;
    tests::shake_hands(client, server);
    CHECK(client.state() == State::open);
    CHECK(SSL_get_servername(server.ssl, TLSEXT_NAMETYPE_host_name) == nullptr);
}

TEST_CASE("a certificate of another name or of nobody is refused, and the server told") {
    for (const std::string host : {"other.test", "test", "bot.test.other", "127.0.0.2"}) {
        Client client(trusting(), host);
        TlsServer server;
        tests::shake_hands(client, server);
        CHECK(client.state() == State::failed);
        CHECK(client.fault() == "certificate verify failed: the certificate is not valid for '" + host + "'");
        CHECK((SSL_get_shutdown(server.ssl) & SSL_RECEIVED_SHUTDOWN) != 0);
        CHECK(!client.write({}));
    }
    const Context of_the_system("");
    Client client(of_the_system, "bot.test");
    TlsServer server;
    tests::shake_hands(client, server);
    CHECK(client.state() == State::failed);
    CHECK(client.fault() == "certificate verify failed: self-signed certificate");
}

TEST_CASE("an old version is refused") {
    Client client(trusting(), "bot.test");
    TlsServer server(TLS1_1_VERSION);
    tests::shake_hands(client, server);
    CHECK(client.state() == State::failed);
}

TEST_CASE("no exchange of keys is offered whose length is the server's to choose") {
    Client client(trusting(), "bot.test");
    TlsServer server;
    server.receive(take_output(client));
    const STACK_OF(SSL_CIPHER)* const offered = SSL_get_client_ciphers(server.ssl);
    REQUIRE(sk_SSL_CIPHER_num(offered) > 3);
    for (int n = 0; n < sk_SSL_CIPHER_num(offered); ++n)
        CHECK(SSL_CIPHER_get_kx_nid(sk_SSL_CIPHER_value(offered, n)) != NID_kx_dhe);
}

TEST_CASE("what cannot be set up is refused") {
    CHECK_THROWS_AS(Context("/nowhere.pem"), std::invalid_argument);
    for (const std::string host : {std::string(), std::string(".test"), std::string("bot.test\0", 9)})
        CHECK_THROWS_AS(Client(trusting(), host), std::invalid_argument);
    CHECK_THROWS_AS(Client(trusting(), std::string(300, 'a')), std::invalid_argument);
}

TEST_CASE("no call leaves an error to other connections of the thread") {
    const std::string garbage = "HTTP/1.1 400 Bad Request\r\n\r\n";
    Client client(trusting(), "bot.test");
    client.receive({reinterpret_cast<const std::uint8_t*>(garbage.data()), garbage.size()});
    CHECK(client.state() == State::failed);
    CHECK(ERR_peek_error() == 0);
    CHECK_THROWS_AS(Context("/nowhere.pem"), std::invalid_argument);
    CHECK(ERR_peek_error() == 0);
}

TEST_CASE("garbage fails, before the handshake and after it") {
    const std::string garbage = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(garbage.data()), garbage.size());
    Client early(trusting(), "bot.test");
    early.receive(bytes);
    CHECK(early.state() == State::failed);
    CHECK(early.fault() == "wrong version number");
    Client client(trusting(), "bot.test");
    TlsServer server;
    tests::shake_hands(client, server);
    client.receive(bytes);
    CHECK(read_all(client).empty());
    CHECK(client.state() == State::failed);
    CHECK(!client.fault().empty());
}

TEST_CASE("a few new keys are borne, and a flood of them ends the connection") {
    Client client(trusting(), "bot.test");
    TlsServer server;
    tests::shake_hands(client, server);
    for (int turn = 0; turn < 5; ++turn) {
        REQUIRE(SSL_key_update(server.ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        server.say("x");
        client.receive(server.output());
        CHECK(read_all(client) == "x");
        CHECK(client.write(std::vector<std::uint8_t>(1, 'y')));
        CHECK(server.receive(take_output(client)) == "y");
    }
    std::vector<std::uint8_t> flood;
    for (int turn = 0; turn < 1000; ++turn) {
        SSL_key_update(server.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(server.ssl);
        const auto bytes = server.output();
        flood.insert(flood.end(), bytes.begin(), bytes.end());
    }
    REQUIRE(flood.size() > 10'000);
    client.receive(flood);
    CHECK(read_all(client).empty());
    CHECK(client.state() == State::failed);
    CHECK(client.output().size() < 4096);
}

TEST_CASE("records are counted, also those that bring nothing") {
    Client client(trusting(), "bot.test");
    TlsServer server;
    tests::shake_hands(client, server);
    client.receive(server.output());
    CHECK(read_all(client).empty());
    client.take_records();
    SSL_key_update(server.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    server.say("one");
    server.say("two");
    client.receive(server.output());
    CHECK(read_all(client) == "onetwo");
    CHECK(client.take_records() == 3);
    CHECK(client.take_records() == 0);
}

TEST_CASE("another handshake is refused, and the connection goes on") {
    Client client(trusting(), "bot.test");
    TlsServer server(TLS1_2_VERSION);
    tests::shake_hands(client, server);
    REQUIRE(client.state() == State::open);
    SSL_renegotiate(server.ssl);
    SSL_do_handshake(server.ssl);
    client.receive(server.output());
    CHECK(read_all(client).empty());
    CHECK(client.state() == State::open);
    const auto refusal = take_output(client);
    REQUIRE(!refusal.empty());
    CHECK(refusal[0] == 21);
    CHECK(client.write(std::vector<std::uint8_t>(1, 'y')));
}
