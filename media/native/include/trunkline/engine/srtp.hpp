#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trunkline/engine/event_queue.hpp"
#include "trunkline/util/node.hpp"

struct srtp_ctx_t_;

namespace trunkline::engine {

/// Protection profiles of SRTP with SDES keys (RFC 4568 6.2, RFC 6188).
enum class SrtpSuite : std::uint8_t {
    aes_cm_128_hmac_sha1_80,
    aes_cm_128_hmac_sha1_32,
    aes_256_cm_hmac_sha1_80,
    aes_256_cm_hmac_sha1_32
};

/// Master key and salt of one direction.
struct SrtpKey {
    static constexpr std::size_t max_bytes = 46;

    SrtpSuite suite = SrtpSuite::aes_cm_128_hmac_sha1_80;
    std::array<std::uint8_t, max_bytes> bytes{};  ///< 30 of them for AES-128, 46 for AES-256.

    bool operator==(const SrtpKey&) const = default;
};

/// Set up the library; true when the engine has SRTP. Takes some 40 ms the first time.
bool srtp_ready();

/// True if the ciphers run without entering the allocator; see `srtp_crypto.hpp`.
bool srtp_accelerated();

/// The two protocols, which have keys and packet formats of their own (RFC 3711 3.1, 3.4).
enum class SrtpKind : std::uint8_t { rtp, rtcp };

/// Outcome of opening a packet.
enum class SrtpVerdict : std::uint8_t {
    authentic,
    repeated,  ///< Its number came before, or is too old to tell (RFC 3711 3.3.2); nothing else was checked.
    unauthentic  ///< Forged, damaged, under another key, or no SRTP.
};

struct SrtpOpened {
    SrtpVerdict verdict = SrtpVerdict::unauthentic;
    std::size_t size_bytes = 0;  ///< Of the plain packet.
};

/// SRTP of one direction under one master key (RFC 3711), with a roll-over counter and a replay window for
/// each SSRC.
///
/// Made by the control thread, used by an engine thread. An SSRC other than the one it was made for costs a
/// few small allocations with its first authentic packet; otherwise no packet does.
class SrtpContext final : public util::Node {
  public:
    enum class Direction : std::uint8_t { sent, received };

    /// Most bytes that protection adds to a packet: the tag, and for RTCP an index before it.
    static constexpr std::size_t max_growth_bytes = 16;
    /// SSRCs of one sender that are remembered; the one that came first is forgotten for another.
    static constexpr std::size_t max_sources = 16;
    /// Size of the replay window, in packets.
    static constexpr std::size_t window_packets = 128;

    /// Throws `std::invalid_argument` when the engine was built without SRTP or the library refuses.
    static std::unique_ptr<SrtpContext> make(const SrtpKey& key, Direction direction,
                                             std::optional<std::uint32_t> ssrc);
    ~SrtpContext() override;

    /// Encrypt and sign the packet in the first `size_bytes` of `room`. Returns its new size; 0 when it
    /// cannot be sent: a sequence number that was used (a second packet under it would give both away), or no
    /// room.
    std::size_t protect(SrtpKind kind, std::span<std::uint8_t> room, std::size_t size_bytes);

    /// Check and decrypt a packet in place. One that is not authentic is left as it was.
    SrtpOpened open(SrtpKind kind, std::span<std::uint8_t> packet);

    /// The same, when the sender counts on under a new key from where it was under `before` (RFC 3711 3.3.1),
    /// instead of from zero as RFC 4568 7.1.4 lets it.
    SrtpOpened open_continued(SrtpContext& before, std::span<std::uint8_t> packet);

  private:
    explicit SrtpContext(srtp_ctx_t_* session) : session_(session) {}

    void note_source(std::uint32_t ssrc);

    srtp_ctx_t_* session_;
    std::array<std::uint32_t, max_sources> sources_{};  ///< The first `source_count_` hold an SSRC each.
    std::size_t source_count_ = 0;
    std::size_t oldest_source_ = 0;
};

/// The receiving side of a stream over changes of its key. Engine thread only.
class SrtpReceiver {
  public:
    SrtpReceiver() = default;
    SrtpReceiver(const SrtpReceiver&) = delete;
    SrtpReceiver& operator=(const SrtpReceiver&) = delete;
    ~SrtpReceiver();

    bool active() const { return current_ != nullptr; }

    /// Adopt a context, or none for plain RTP. Packets of the far end under the former key are
    /// accepted until its first packet under this one.
    void use(SrtpContext* context, EventQueue& event_queue);

    SrtpOpened open(SrtpKind kind, std::span<std::uint8_t> packet, EventQueue& event_queue);

  private:
    SrtpContext* current_ = nullptr;
    SrtpContext* before_ = nullptr;
};

/// Changes of keys by a call of `connect`.
struct SrtpChange {
    bool sent_changed = false;
    bool received_changed = false;
    /// We sent under this key before and gave it up: it takes another SSRC, because its packets are counted
    /// from zero again and would lie under the keystream of the first ones (RFC 3711 9.1).
    bool sent_again = false;
    std::unique_ptr<SrtpContext> sent, received;  ///< None for plain RTP.
};

/// The control thread's memory of a stream's keys: contexts are made anew only when a key changes, so that
/// counters go on over every other change of the session (RFC 3711 3.3.1).
class SrtpKeys {
  public:
    /// Throws `std::invalid_argument` when only one key is given, or as `SrtpContext::make` does; nothing has
    /// changed then.
    SrtpChange update(const std::optional<SrtpKey>& sent, const std::optional<SrtpKey>& received,
                      std::uint32_t ssrc_sent, std::optional<std::uint32_t> ssrc_received);

    /// True if this key was used for sending before, and given up.
    bool spent(const std::optional<SrtpKey>& sent) const;

  private:
    /// Keys remembered; after so many, every other one counts as spent.
    static constexpr std::size_t max_spent = 64;

    std::optional<SrtpKey> sent_, received_;
    std::vector<SrtpKey> spent_;
};

}  // namespace trunkline::engine
