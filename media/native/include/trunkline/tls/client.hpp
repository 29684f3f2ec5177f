#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trunkline::tls {

/// Authorities and policy that connections share: TLS 1.2 or later, verified certificates, no renegotiation.
/// Any thread may use it.
class Context {
  public:
    /// Trust the authorities of a PEM file, or those of the system if its name is empty. Throws
    /// `std::invalid_argument` for a file that cannot be read, and where the engine was built without TLS.
    explicit Context(const std::string& authorities_file);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context();

  private:
    friend class Client;
    struct OpenSsl;
    std::unique_ptr<OpenSsl> openssl_;
};

enum class State : std::uint8_t {
    connecting = 0,
    open = 1,
    ended = 2,   ///< The far end has said that no more comes.
    failed = 3,  ///< `fault` says why; `output` may have an alert for the far end.
};

/// Client's end of a TLS connection, over bytes that somebody else receives and sends. No I/O and no clock.
///
/// It may move between threads, but not be used by two at once.
class Client {
  public:
    /// Messages of the protocol itself that are borne once the connection is open: tickets and new keys.
    static constexpr int max_later_messages = 32;
    /// Largest piece that `read` gives and `write` puts into one record.
    static constexpr std::size_t max_record_bytes = 16 * 1024;

    /// Begin to connect to a host, a name in ASCII or an IP literal, whose certificate must be that of the
    /// name. Throws `std::invalid_argument` for a name that cannot be one.
    Client(const Context& context, const std::string& host);
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client();

    State state() const { return state_; }
    const std::string& fault() const { return fault_; }

    /// Take bytes that came.
    void receive(std::span<const std::uint8_t> bytes);

    /// Read what was in the next record; 0 if there is no whole one.
    std::size_t read(std::span<std::uint8_t> room);

    /// Records that were read since the last call, with those that bring nothing.
    std::size_t take_records();

    /// Put bytes into records of `output`. False if the connection is not open.
    bool write(std::span<const std::uint8_t> bytes);

    /// Tell the far end that no more comes. Idempotent.
    void close();

    /// Bytes to send.
    std::span<const std::uint8_t> output() const { return std::span(output_).subspan(sent_bytes_); }

    /// So many of them were sent.
    void sent(std::size_t size_bytes);

  private:
    struct OpenSsl;

    void advance();
    void settle(int result);
    void collect();

    std::unique_ptr<OpenSsl> openssl_;
    State state_ = State::connecting;
    std::string fault_;
    std::vector<std::uint8_t> output_;
    std::size_t sent_bytes_ = 0;
};

}  // namespace trunkline::tls
