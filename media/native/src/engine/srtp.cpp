#include "trunkline/engine/srtp.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "trunkline/engine/srtp_crypto.hpp"

#if TRUNKLINE_HAVE_SRTP
#include <arpa/inet.h>
#include <srtp2/srtp.h>
#endif

namespace trunkline::engine {

namespace {

/// Offset of the SSRC in a packet (RFC 3550 5.1, 6.4.1).
std::uint32_t ssrc_of(SrtpKind kind, std::span<const std::uint8_t> packet) {
    const std::uint8_t* at = packet.data() + (kind == SrtpKind::rtp ? 8 : 4);
    return static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
           static_cast<std::uint32_t>(at[2]) << 8 | at[3];
}

}  // namespace

#if TRUNKLINE_HAVE_SRTP

namespace {

struct Library {
    Library() : ready(srtp_init() == srtp_err_status_ok), accelerated(ready && use_openssl_for_srtp()) {}

    bool ready, accelerated;
};

const Library& library() {
    static const Library made;
    return made;
}

void fill_policy(srtp_policy_t& policy, SrtpSuite suite) {
    switch (suite) {
        case SrtpSuite::aes_cm_128_hmac_sha1_80:
            srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
            break;
        case SrtpSuite::aes_cm_128_hmac_sha1_32:
            srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp);
            break;
        case SrtpSuite::aes_256_cm_hmac_sha1_80:
            srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtp);
            break;
        case SrtpSuite::aes_256_cm_hmac_sha1_32:
            srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32(&policy.rtp);
            break;
    }
    // The short tag is for RTP alone: RTCP always has one of 80 bits (RFC 4568 6.2.2, RFC 6188 4.2).
    if (suite < SrtpSuite::aes_256_cm_hmac_sha1_80) {
        srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
    } else {
        srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp);
    }
}

constexpr std::size_t min_bytes(SrtpKind kind) {
    return kind == SrtpKind::rtp ? 12 : 8;
}

}  // namespace

bool srtp_ready() {
    return library().ready;
}

bool srtp_accelerated() {
    return library().accelerated;
}

std::unique_ptr<SrtpContext> SrtpContext::make(const SrtpKey& key, Direction direction,
                                               std::optional<std::uint32_t> ssrc) {
    if (!srtp_ready()) throw std::invalid_argument("SRTP: libsrtp2 cannot be set up");
    std::array<std::uint8_t, SrtpKey::max_bytes> bytes = key.bytes;
    srtp_policy_t any{};
    fill_policy(any, key.suite);
    any.key = bytes.data();
    any.window_size = window_packets;
    // Two packets of ours under one number would lie under one keystream (RFC 3711 9.1).
    any.allow_repeat_tx = 0;
    any.ssrc.type = direction == Direction::sent ? ssrc_any_outbound : ssrc_any_inbound;
    srtp_policy_t known = any;
    known.ssrc = {ssrc_specific, ssrc.value_or(0)};
    known.next = &any;
    srtp_t session = nullptr;
    const srtp_err_status_t status = srtp_create(&session, ssrc ? &known : &any);
    if (status != srtp_err_status_ok) {
        throw std::invalid_argument("SRTP: libsrtp2 refuses the key, status " + std::to_string(status));
    }
    std::unique_ptr<SrtpContext> made(new SrtpContext(session));
    if (ssrc) made->note_source(*ssrc);
    return made;
}

SrtpContext::~SrtpContext() {
    srtp_dealloc(session_);
}

std::size_t SrtpContext::protect(SrtpKind kind, std::span<std::uint8_t> room, std::size_t size_bytes) {
    if (size_bytes < min_bytes(kind) || size_bytes + max_growth_bytes > room.size()) return 0;
    int size = static_cast<int>(size_bytes);
    const srtp_err_status_t status = kind == SrtpKind::rtp ? srtp_protect(session_, room.data(), &size)
                                                           : srtp_protect_rtcp(session_, room.data(), &size);
    if (status != srtp_err_status_ok) return 0;
    note_source(ssrc_of(kind, room));
    return static_cast<std::size_t>(size);
}

SrtpOpened SrtpContext::open(SrtpKind kind, std::span<std::uint8_t> packet) {
    if (packet.size() < min_bytes(kind)) return {};
    int size = static_cast<int>(packet.size());
    const srtp_err_status_t status = kind == SrtpKind::rtp
                                         ? srtp_unprotect(session_, packet.data(), &size)
                                         : srtp_unprotect_rtcp(session_, packet.data(), &size);
    switch (status) {
        case srtp_err_status_ok:
            note_source(ssrc_of(kind, packet));
            return {SrtpVerdict::authentic, static_cast<std::size_t>(size)};
        case srtp_err_status_replay_fail:
        case srtp_err_status_replay_old:
            return {SrtpVerdict::repeated, 0};
        default:
            return {};
    }
}

SrtpOpened SrtpContext::open_continued(SrtpContext& before, std::span<std::uint8_t> packet) {
    if (packet.size() < min_bytes(SrtpKind::rtp)) return {};
    const std::uint32_t ssrc = ssrc_of(SrtpKind::rtp, packet);
    std::uint32_t rolled = 0;
    if (srtp_get_stream_roc(before.session_, ssrc, &rolled) != srtp_err_status_ok || rolled == 0) return {};
    if (srtp_set_stream_roc(session_, ssrc, rolled) != srtp_err_status_ok) return {};
    const SrtpOpened opened = open(SrtpKind::rtp, packet);
    if (opened.verdict != SrtpVerdict::authentic) srtp_set_stream_roc(session_, ssrc, 0);
    return opened;
}

/// Forget a source for each that is new when there are too many: the library keeps a list without an end.
void SrtpContext::note_source(std::uint32_t ssrc) {
    const auto known = sources_.begin() + static_cast<std::ptrdiff_t>(source_count_);
    if (std::find(sources_.begin(), known, ssrc) != known) return;
    if (source_count_ < max_sources) {
        sources_[source_count_++] = ssrc;
        return;
    }
    // Unlike its neighbours, this function takes the SSRC as it stands in a packet.
    srtp_remove_stream(session_, htonl(std::exchange(sources_[oldest_source_], ssrc)));
    oldest_source_ = (oldest_source_ + 1) % max_sources;
}

#else

bool srtp_ready() {
    return false;
}

bool srtp_accelerated() {
    return false;
}

std::unique_ptr<SrtpContext> SrtpContext::make(const SrtpKey&, Direction, std::optional<std::uint32_t>) {
    throw std::invalid_argument("the engine was built without SRTP (libsrtp2)");
}

SrtpContext::~SrtpContext() = default;

std::size_t SrtpContext::protect(SrtpKind, std::span<std::uint8_t>, std::size_t) {
    return 0;
}

SrtpOpened SrtpContext::open(SrtpKind, std::span<std::uint8_t>) {
    return {};
}

SrtpOpened SrtpContext::open_continued(SrtpContext&, std::span<std::uint8_t>) {
    return {};
}

void SrtpContext::note_source(std::uint32_t) {}

#endif

SrtpReceiver::~SrtpReceiver() {
    delete current_;
    delete before_;
}

void SrtpReceiver::use(SrtpContext* context, EventQueue& event_queue) {
    if (before_ != nullptr) event_queue.discard(std::exchange(before_, nullptr));
    if (context == nullptr) {
        if (current_ != nullptr) event_queue.discard(std::exchange(current_, nullptr));
    } else {
        before_ = std::exchange(current_, context);
    }
}

SrtpOpened SrtpReceiver::open(SrtpKind kind, std::span<std::uint8_t> packet, EventQueue& event_queue) {
    SrtpOpened opened = current_->open(kind, packet);
    if (before_ == nullptr) return opened;
    if (opened.verdict == SrtpVerdict::unauthentic && kind == SrtpKind::rtp) {
        opened = current_->open_continued(*before_, packet);
    }
    if (opened.verdict == SrtpVerdict::unauthentic) return before_->open(kind, packet);
    // RTCP says nothing about what the packets of RTP on their way are under.
    const bool turned = kind == SrtpKind::rtp && opened.verdict == SrtpVerdict::authentic;
    if (turned) event_queue.discard(std::exchange(before_, nullptr));
    return opened;
}

bool SrtpKeys::spent(const std::optional<SrtpKey>& sent) const {
    if (!sent || sent == sent_) return false;
    return spent_.size() == max_spent || std::find(spent_.begin(), spent_.end(), *sent) != spent_.end();
}

SrtpChange SrtpKeys::update(const std::optional<SrtpKey>& sent, const std::optional<SrtpKey>& received,
                            std::uint32_t ssrc_sent, std::optional<std::uint32_t> ssrc_received) {
    if (sent.has_value() != received.has_value()) {
        throw std::invalid_argument("SRTP needs a key for each direction");
    }
    SrtpChange change;
    change.sent_changed = sent != sent_;
    change.sent_again = spent(sent);
    change.received_changed = received != received_;
    if (change.sent_changed && sent) {
        change.sent = SrtpContext::make(*sent, SrtpContext::Direction::sent, ssrc_sent);
    }
    if (change.received_changed && received) {
        change.received = SrtpContext::make(*received, SrtpContext::Direction::received, ssrc_received);
    }
    if (change.sent_changed && sent_ && spent_.size() < max_spent) spent_.push_back(*sent_);
    sent_ = sent;
    received_ = received;
    return change;
}

}  // namespace trunkline::engine
