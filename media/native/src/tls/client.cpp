#include "trunkline/tls/client.hpp"

#include <stdexcept>
#include <utility>

#if TRUNKLINE_HAVE_SSL

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace trunkline::tls {

namespace {

/// Those of Python's `ssl.create_default_context`, which everything else here connects with, but DHE: the far
/// end chooses its numbers, and the longest keep the thread busy for most of a second.
constexpr const char* ciphers =
    "@SECLEVEL=2:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM";
/// `http/1.1` as it lies on the wire (RFC 7301 3.1).
constexpr std::array<unsigned char, 9> protocols{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// The text of the last error of the library.
std::string reason() {
    const unsigned long error = ERR_peek_last_error();
    const char* text = ERR_reason_error_string(error);
    return text != nullptr ? text : "TLS failed";
}

/// Keeps the errors of the library to the call in which they arise. The library takes those that it finds on
/// the thread for its own, and so does Python's `ssl` in any other connection of the same thread.
class Errors {
  public:
    Errors() { forget(); }
    Errors(const Errors&) = delete;
    Errors& operator=(const Errors&) = delete;
    ~Errors() { forget(); }

  private:
    static void forget() {
        if (ERR_peek_error() != 0) ERR_clear_error();
    }
};

bool is_address(const std::string& host) {
    ASN1_OCTET_STRING* const address = a2i_IPADDRESS(host.c_str());
    ASN1_OCTET_STRING_free(address);
    return address != nullptr;
}

}  // namespace

struct Context::OpenSsl {
    ~OpenSsl() { SSL_CTX_free(context); }
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
};

struct Client::OpenSsl {
    ~OpenSsl() { SSL_free(ssl); }

    /// Counts records, and what the far end sends beside data, once the connection is open; nobody needs much
    /// of it, and each new key is work. What is beyond the limit is not read.
    static void count(int written, int, int type, const void*, std::size_t, SSL* ssl, void* openssl) {
        auto& counted = *static_cast<OpenSsl*>(openssl);
        if (written != 0 || !counted.open) return;
        if (type == SSL3_RT_HEADER) ++counted.records;
        if (type != SSL3_RT_HANDSHAKE) return;
        if (++counted.later_messages > max_later_messages) (void)BIO_reset(SSL_get_rbio(ssl));
    }

    SSL* ssl = nullptr;
    BIO* received = nullptr;
    BIO* sending = nullptr;
    std::string host;
    bool open = false;
    bool told_end = false;
    int later_messages = 0;
    std::size_t records = 0;
};

Context::Context(const std::string& authorities_file) : openssl_(std::make_unique<OpenSsl>()) {
    SSL_CTX* const context = openssl_->context;
    const Errors errors;
    if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context, ciphers) != 1 ||
        SSL_CTX_set_alpn_protos(context, protocols.data(), protocols.size()) != 0) {
        throw std::invalid_argument("TLS cannot be set up: " + reason());
    }
    const int loaded = authorities_file.empty()
                           ? SSL_CTX_set_default_verify_paths(context)
                           : SSL_CTX_load_verify_locations(context, authorities_file.c_str(), nullptr);
    if (loaded != 1) throw std::invalid_argument("the authorities cannot be read: " + reason());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    X509_VERIFY_PARAM* const rules = SSL_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_TRUSTED_FIRST);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
}

Context::~Context() = default;

Client::Client(const Context& context, const std::string& host) : openssl_(std::make_unique<OpenSsl>()) {
    const Errors errors;
    OpenSsl& openssl = *openssl_;
    openssl.host = host;
    openssl.ssl = SSL_new(context.openssl_->context);
    openssl.received = BIO_new(BIO_s_mem());
    openssl.sending = BIO_new(BIO_s_mem());
    if (openssl.ssl == nullptr || openssl.received == nullptr || openssl.sending == nullptr) {
        BIO_free(openssl.received);
        BIO_free(openssl.sending);
        throw std::invalid_argument("TLS cannot be set up: " + reason());
    }
    SSL_set_bio(openssl.ssl, openssl.received, openssl.sending);
    X509_VERIFY_PARAM* const rules = SSL_get0_param(openssl.ssl);
    const bool named = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1
                                        : X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) == 1 &&
                                              SSL_set_tlsext_host_name(openssl.ssl, host.c_str()) == 1;
    // The library takes a dot in front for any name below it, and no name for any at all.
    if (host.empty() || host.front() == '.' || host.find('\0') != std::string::npos || !named)
        throw std::invalid_argument("the name of the host cannot be one");
    SSL_set_msg_callback(openssl.ssl, &OpenSsl::count);
    SSL_set_msg_callback_arg(openssl.ssl, &openssl);
    SSL_set_connect_state(openssl.ssl);
    advance();
}

Client::~Client() = default;

void Client::receive(std::span<const std::uint8_t> bytes) {
    if (state_ != State::connecting && state_ != State::open) return;
    const Errors errors;
    if (BIO_write(openssl_->received, bytes.data(), static_cast<int>(bytes.size())) !=
        static_cast<int>(bytes.size())) {
        settle(-1);
    } else if (state_ == State::connecting) {
        advance();
    }
}

std::size_t Client::read(std::span<std::uint8_t> room) {
    // Without read-ahead, the library has nothing of a record but what is left of the last, or a part.
    if (state_ != State::open ||
        (BIO_ctrl_pending(openssl_->received) == 0 && SSL_pending(openssl_->ssl) == 0)) {
        return 0;
    }
    const Errors errors;
    const int size = SSL_read(openssl_->ssl, room.data(), static_cast<int>(room.size()));
    collect();
    if (openssl_->later_messages > max_later_messages) {
        state_ = State::failed;
        fault_ = "too many messages of the protocol itself";
        return 0;
    }
    if (size > 0) return static_cast<std::size_t>(size);
    settle(size);
    return 0;
}

std::size_t Client::take_records() {
    return std::exchange(openssl_->records, 0);
}

bool Client::write(std::span<const std::uint8_t> bytes) {
    if (state_ != State::open) return false;
    if (bytes.empty()) return true;
    const Errors errors;
    const int size = SSL_write(openssl_->ssl, bytes.data(), static_cast<int>(bytes.size()));
    collect();
    if (size <= 0) settle(size);
    return size > 0;
}

void Client::close() {
    if ((state_ != State::open && state_ != State::ended) || std::exchange(openssl_->told_end, true)) return;
    const Errors errors;
    // It is told; the answer is not waited for.
    (void)SSL_shutdown(openssl_->ssl);
    collect();
}

void Client::sent(std::size_t size_bytes) {
    sent_bytes_ += size_bytes;
    if (sent_bytes_ < output_.size()) return;
    output_.clear();
    sent_bytes_ = 0;
}

/// Go on with the handshake.
void Client::advance() {
    const int result = SSL_do_handshake(openssl_->ssl);
    collect();
    if (result != 1) {
        settle(result);
        return;
    }
    state_ = State::open;
    openssl_->open = true;
}

/// Evaluate what the library could not do.
void Client::settle(int result) {
    const int error = SSL_get_error(openssl_->ssl, result);
    if (error == SSL_ERROR_WANT_READ) return;
    if (error == SSL_ERROR_ZERO_RETURN) {
        state_ = State::ended;
        return;
    }
    state_ = State::failed;
    const long verified = SSL_get_verify_result(openssl_->ssl);
    if (verified == X509_V_OK) {
        fault_ = reason();
    } else if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        fault_ = "certificate verify failed: the certificate is not valid for '" + openssl_->host + "'";
    } else {
        fault_ = std::string("certificate verify failed: ") + X509_verify_cert_error_string(verified);
    }
}

/// Fetch what the library has to send.
void Client::collect() {
    const std::size_t size = BIO_ctrl_pending(openssl_->sending);
    if (size == 0) return;
    const std::size_t at = output_.size();
    output_.resize(at + size);
    (void)BIO_read(openssl_->sending, output_.data() + at, static_cast<int>(size));
}

}  // namespace trunkline::tls

#else

namespace trunkline::tls {

struct Context::OpenSsl {};
struct Client::OpenSsl {};

Context::Context(const std::string&) {
    throw std::invalid_argument("the engine was built without TLS (libssl)");
}

Context::~Context() = default;

Client::Client(const Context&, const std::string&) {
    throw std::invalid_argument("the engine was built without TLS (libssl)");
}

Client::~Client() = default;

void Client::receive(std::span<const std::uint8_t>) {}

std::size_t Client::read(std::span<std::uint8_t>) {
    return 0;
}

std::size_t Client::take_records() {
    return 0;
}

bool Client::write(std::span<const std::uint8_t>) {
    return false;
}

void Client::close() {}

void Client::sent(std::size_t) {}

}  // namespace trunkline::tls

#endif
