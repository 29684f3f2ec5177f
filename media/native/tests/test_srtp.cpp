// SRTP and SRTCP: packets of the RFCs and of known senders, forged and repeated ones, and changes of key.

#include <doctest/doctest.h>

#include "trunkline/engine/srtp.hpp"

#if TRUNKLINE_HAVE_SRTP

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer's own; not every compiler ships its header.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));
#endif

using namespace trunkline;
using engine::SrtpContext;
using engine::SrtpKey;
using engine::SrtpKeys;
using engine::SrtpKind;
using engine::SrtpOpened;
using engine::SrtpReceiver;
using engine::SrtpSuite;
using engine::SrtpVerdict;

namespace {

constexpr std::uint32_t ssrc = 0xcafebabe;
constexpr std::array suites{SrtpSuite::aes_cm_128_hmac_sha1_80, SrtpSuite::aes_cm_128_hmac_sha1_32,
                            SrtpSuite::aes_256_cm_hmac_sha1_80, SrtpSuite::aes_256_cm_hmac_sha1_32};

using Bytes = std::vector<std::uint8_t>;

SrtpKey key_of(std::uint8_t fill, SrtpSuite suite = SrtpSuite::aes_cm_128_hmac_sha1_80) {
    SrtpKey key;
    key.suite = suite;
    key.bytes.fill(fill);
    return key;
}

std::unique_ptr<SrtpContext> sender(const SrtpKey& key) {
    return SrtpContext::make(key, SrtpContext::Direction::sent, ssrc);
}

std::unique_ptr<SrtpContext> receiver(const SrtpKey& key) {
    return SrtpContext::make(key, SrtpContext::Direction::received, std::nullopt);
}

Bytes rtp_packet(std::uint16_t sequence, std::uint32_t from = ssrc) {
    Bytes packet{0x80, 0x00, static_cast<std::uint8_t>(sequence >> 8), static_cast<std::uint8_t>(sequence)};
    packet.resize(172, 0x55);
    for (int n = 0; n < 4; ++n)
        packet[8 + n] = static_cast<std::uint8_t>(from >> (24 - 8 * n));
    return packet;
}

/// A receiver report without blocks.
Bytes rtcp() {
    return {0x80, 201, 0, 1, 0xca, 0xfe, 0xba, 0xbe};
}

Bytes sealed(SrtpContext& context, Bytes packet, SrtpKind kind = SrtpKind::rtp) {
    const std::size_t size = packet.size();
    packet.resize(size + SrtpContext::max_growth_bytes);
    packet.resize(context.protect(kind, packet, size));
    return packet;
}

struct Keeper {
    engine::Notifier notifier;
    engine::EventQueue event_queue{notifier};

    std::size_t discarded() {
        std::size_t count = 0;
        util::Node* list = event_queue.spent().take_newest_first();
        for (util::Node* node = list; node != nullptr; node = node->next_node)
            ++count;
        util::NodeStack::destroy(list);
        return count;
    }
};

}  // namespace

TEST_SUITE("srtp") {
    TEST_CASE("a packet under the master key of RFC 3711 B.3 looks as other implementations have it") {
        const std::array<std::uint8_t, 30> master{0xe1, 0xf9, 0x7a, 0x0d, 0x3e, 0x01, 0x8b, 0xe0, 0xd6, 0x4f,
                                                  0xa3, 0x2c, 0x06, 0xde, 0x41, 0x39, 0x0e, 0xc6, 0x75, 0xad,
                                                  0x49, 0x8a, 0xfe, 0xeb, 0xb6, 0x96, 0x0b, 0x3a, 0xab, 0xe6};
        const Bytes plain{0x80, 0x0f, 0x12, 0x34, 0xde, 0xca, 0xfb, 0xad, 0xca, 0xfe, 0xba, 0xbe, 0xab, 0xab,
                          0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab};
        const Bytes expected{0x80, 0x0f, 0x12, 0x34, 0xde, 0xca, 0xfb, 0xad, 0xca, 0xfe, 0xba, 0xbe, 0x4e,
                             0x55, 0xdc, 0x4c, 0xe7, 0x99, 0x78, 0xd8, 0x8c, 0xa4, 0xd2, 0x15, 0x94, 0x9d,
                             0x24, 0x02, 0xb7, 0x8d, 0x6a, 0xcc, 0x99, 0xea, 0x17, 0x9b, 0x8d, 0xbb};
        SrtpKey key;
        std::copy(master.begin(), master.end(), key.bytes.begin());
        Bytes packet = sealed(*sender(key), plain);
        CHECK(packet == expected);
        const SrtpOpened opened = receiver(key)->open(SrtpKind::rtp, packet);
        CHECK(opened.verdict == SrtpVerdict::authentic);
        packet.resize(opened.size_bytes);
        CHECK(packet == plain);
    }

    TEST_CASE("every suite protects RTP and RTCP, with tags of its length") {
        for (const SrtpSuite suite : suites) {
            const bool is_short =
                suite == SrtpSuite::aes_cm_128_hmac_sha1_32 || suite == SrtpSuite::aes_256_cm_hmac_sha1_32;
            const auto sent = sender(key_of(1, suite));
            const auto received = receiver(key_of(1, suite));
            Bytes audio = sealed(*sent, rtp_packet(7));
            CHECK(audio.size() == 172 + (is_short ? 4U : 10U));
            const Bytes plain = rtp_packet(7);
            CHECK(std::equal(plain.begin(), plain.begin() + 12, audio.begin()));
            CHECK(Bytes(audio.begin() + 12, audio.begin() + 172) != Bytes(160, 0x55));
            CHECK(received->open(SrtpKind::rtp, audio).size_bytes == 172);
            CHECK(Bytes(audio.begin(), audio.begin() + 172) == rtp_packet(7));
            // RFC 4568 6.2.2: the tag of RTCP stays at 80 bits; 32 bits are its index.
            Bytes report = sealed(*sent, rtcp(), SrtpKind::rtcp);
            CHECK(report.size() == 8 + 4 + 10);
            CHECK(received->open(SrtpKind::rtcp, report).size_bytes == 8);
        }
    }

    TEST_CASE("what is forged, damaged or under another key is left as it was") {
        const auto sent = sender(key_of(1));
        const auto received = receiver(key_of(1));
        const Bytes packet = sealed(*sent, rtp_packet(7));
        for (std::size_t n = 0; n < packet.size(); ++n) {
            Bytes damaged = packet;
            damaged[n] ^= 0x10;
            const Bytes before = damaged;
            CHECK(received->open(SrtpKind::rtp, damaged).verdict == SrtpVerdict::unauthentic);
            CHECK(damaged == before);
        }
        Bytes foreign = sealed(*sender(key_of(2)), rtp_packet(8));
        CHECK(received->open(SrtpKind::rtp, foreign).verdict == SrtpVerdict::unauthentic);
        Bytes plain = rtp_packet(9);
        CHECK(received->open(SrtpKind::rtp, plain).verdict == SrtpVerdict::unauthentic);
        Bytes whole = packet;
        CHECK(received->open(SrtpKind::rtp, whole).verdict == SrtpVerdict::authentic);
    }

    TEST_CASE("nothing is heard twice, and late packets only within the window") {
        const auto sent = sender(key_of(1));
        const auto received = receiver(key_of(1));
        std::vector<Bytes> packets;
        for (std::uint16_t n = 0; n < 400; ++n)
            packets.push_back(sealed(*sent, rtp_packet(n)));
        const auto open = [&](std::size_t n) {
            Bytes copy = packets[n];
            return received->open(SrtpKind::rtp, copy).verdict;
        };
        CHECK(open(0) == SrtpVerdict::authentic);
        CHECK(open(0) == SrtpVerdict::repeated);
        CHECK(open(399) == SrtpVerdict::authentic);
        CHECK(open(399 - SrtpContext::window_packets + 1) == SrtpVerdict::authentic);
        CHECK(open(399 - SrtpContext::window_packets + 1) == SrtpVerdict::repeated);
        CHECK(open(399 - SrtpContext::window_packets - 1) == SrtpVerdict::repeated);
    }

    TEST_CASE("a number is sent under once, and never without room for the tag") {
        const auto sent = sender(key_of(1));
        CHECK(!sealed(*sent, rtp_packet(7)).empty());
        CHECK(sealed(*sent, rtp_packet(7)).empty());
        // What is relayed may be out of order.
        CHECK(!sealed(*sent, rtp_packet(9)).empty());
        CHECK(!sealed(*sent, rtp_packet(8)).empty());
        Bytes tight = rtp_packet(10);
        CHECK(sent->protect(SrtpKind::rtp, tight, tight.size()) == 0);
        CHECK(tight == rtp_packet(10));
        Bytes stub(40);
        CHECK(sent->protect(SrtpKind::rtp, stub, 11) == 0);
    }

    TEST_CASE("the roll-over counter goes on over 300,000 packets, loss and a change of SSRC") {
        const auto sent = sender(key_of(1));
        const auto received = receiver(key_of(1));
        std::mt19937 random(3);
        std::size_t heard = 0, arrived = 0;
        for (std::uint32_t n = 0; n < 300'000; ++n) {
            Bytes packet = sealed(*sent, rtp_packet(static_cast<std::uint16_t>(n + 60'000)));
            if (n % 65'536 == 5'536 || random() % 20 == 0) continue;
            ++arrived;
            heard += received->open(SrtpKind::rtp, packet).verdict == SrtpVerdict::authentic;
        }
        CHECK(heard == arrived);
        // Another source begins at zero and does not disturb the first.
        Bytes other = sealed(*sent, rtp_packet(5, 0x1234));
        CHECK(received->open(SrtpKind::rtp, other).verdict == SrtpVerdict::authentic);
        Bytes back = sealed(*sent, rtp_packet(static_cast<std::uint16_t>(300'000 + 60'000)));
        CHECK(received->open(SrtpKind::rtp, back).verdict == SrtpVerdict::authentic);
    }

    TEST_CASE("a sender of ever new SSRCs is heard and fills no memory") {
        const auto received = receiver(key_of(1));
        for (std::uint32_t n = 1; n < 1000; ++n) {
            Bytes packet =
                sealed(*SrtpContext::make(key_of(1), SrtpContext::Direction::sent, n), rtp_packet(7, n));
            CHECK(received->open(SrtpKind::rtp, packet).verdict == SrtpVerdict::authentic);
            Bytes again =
                sealed(*SrtpContext::make(key_of(1), SrtpContext::Direction::sent, n), rtp_packet(7, n));
            CHECK(received->open(SrtpKind::rtp, again).verdict == SrtpVerdict::repeated);
        }
        // The first one was forgotten for the last ones.
        Bytes first =
            sealed(*SrtpContext::make(key_of(1), SrtpContext::Direction::sent, 1), rtp_packet(7, 1));
        CHECK(received->open(SrtpKind::rtp, first).verdict == SrtpVerdict::authentic);
    }

    TEST_CASE("a stream that must change its SSRC again and again keeps the last ones alone") {
        const auto sent = sender(key_of(1));
        for (std::uint32_t n = 1; n <= 1000; ++n)
            REQUIRE(!sealed(*sent, rtp_packet(7, n)).empty());
        // What was sent lately is not sent again under the same number; what is forgotten would be.
        CHECK(sealed(*sent, rtp_packet(7, 1000)).empty());
        CHECK(sealed(*sent, rtp_packet(7, 1000 - SrtpContext::max_sources + 1)).empty());
        CHECK(!sealed(*sent, rtp_packet(7, 1)).empty());
    }

    TEST_CASE("packets under the old key are heard until the first under the new one") {
        Keeper keeper;
        SrtpReceiver received;
        CHECK(!received.active());
        received.use(receiver(key_of(1)).release(), keeper.event_queue);
        const auto before = sender(key_of(1)), after = sender(key_of(2));
        const auto hear = [&](SrtpContext& from, std::uint16_t sequence) {
            Bytes packet = sealed(from, rtp_packet(sequence));
            return received.open(SrtpKind::rtp, packet, keeper.event_queue).verdict;
        };
        CHECK(hear(*before, 1) == SrtpVerdict::authentic);
        received.use(receiver(key_of(2)).release(), keeper.event_queue);
        CHECK(hear(*before, 2) == SrtpVerdict::authentic);
        CHECK(keeper.discarded() == 0);
        CHECK(hear(*after, 3) == SrtpVerdict::authentic);
        CHECK(keeper.discarded() == 1);
        CHECK(hear(*before, 4) == SrtpVerdict::unauthentic);
        received.use(nullptr, keeper.event_queue);
        CHECK(!received.active());
        CHECK(keeper.discarded() == 1);
    }

    TEST_CASE("a new key goes on from the old counter or begins anew, as the sender has it") {
        for (const bool continues : {false, true}) {
            Keeper keeper;
            SrtpReceiver received;
            const auto before = sender(key_of(1));
            received.use(receiver(key_of(1)).release(), keeper.event_queue);
            for (std::uint32_t n = 0; n < 70'000; ++n) {
                Bytes packet = sealed(*before, rtp_packet(static_cast<std::uint16_t>(n)));
                REQUIRE(received.open(SrtpKind::rtp, packet, keeper.event_queue).verdict ==
                        SrtpVerdict::authentic);
            }
            received.use(SrtpContext::make(key_of(2), SrtpContext::Direction::received, ssrc).release(),
                         keeper.event_queue);
            const auto after = sender(key_of(2));
            // A sender that counts on is one that has sent as many packets under the new key.
            for (std::uint32_t n = 0; continues && n < 70'000; n += 1'000) {
                sealed(*after, rtp_packet(static_cast<std::uint16_t>(n)));
            }
            for (std::uint32_t n = 70'000; n < 140'000; ++n) {
                const auto sequence = static_cast<std::uint16_t>(n);
                if (n < 70'003) {
                    Bytes forged = sealed(*sender(key_of(3)), rtp_packet(sequence));
                    CHECK(received.open(SrtpKind::rtp, forged, keeper.event_queue).verdict ==
                          SrtpVerdict::unauthentic);
                }
                Bytes packet = sealed(*after, rtp_packet(sequence));
                REQUIRE(received.open(SrtpKind::rtp, packet, keeper.event_queue).verdict ==
                        SrtpVerdict::authentic);
            }
            CHECK(keeper.discarded() == 1);
        }
    }

    TEST_CASE("contexts are made anew only for keys that changed") {
        SrtpKeys keys;
        const std::optional<SrtpKey> none, one = key_of(1), two = key_of(2), three = key_of(3);
        auto change = keys.update(none, none, ssrc, std::nullopt);
        CHECK_FALSE((change.sent_changed || change.received_changed));
        change = keys.update(one, two, ssrc, std::nullopt);
        CHECK((change.sent && change.received));
        change = keys.update(one, two, ssrc, 7);
        CHECK_FALSE((change.sent_changed || change.received_changed || change.sent || change.received));
        change = keys.update(one, three, ssrc, 7);
        CHECK_FALSE((change.sent_changed || change.sent));
        CHECK((change.received_changed && change.received));
        CHECK_THROWS_AS(keys.update(one, none, ssrc, 7), std::invalid_argument);
        CHECK_FALSE(keys.update(one, three, ssrc, 7).received_changed);
        change = keys.update(none, none, ssrc, 7);
        CHECK((change.sent_changed && change.received_changed && !change.sent && !change.received));
    }

    TEST_CASE("a key that was given up is known when it comes again") {
        SrtpKeys keys;
        const std::optional<SrtpKey> none, one = key_of(1), two = key_of(2), three = key_of(3);
        CHECK_FALSE(keys.update(one, two, ssrc, std::nullopt).sent_again);
        CHECK_FALSE(keys.spent(one));
        CHECK_FALSE(keys.update(none, none, ssrc, std::nullopt).sent_again);
        CHECK(keys.spent(one));
        // What the far end sends under is its own affair.
        CHECK_FALSE(keys.spent(two));
        CHECK_FALSE(keys.update(three, two, ssrc, std::nullopt).sent_again);
        CHECK(keys.update(one, two, ssrc, std::nullopt).sent_again);
        CHECK_FALSE(keys.update(one, two, ssrc, std::nullopt).sent_again);
        // The memory is bounded; when it is full, none is trusted.
        for (int n = 10; n < 100; ++n)
            keys.update(key_of(static_cast<std::uint8_t>(n)), two, ssrc, std::nullopt);
        CHECK(keys.spent(key_of(200)));
        CHECK_FALSE(keys.spent(key_of(99)));
    }

    TEST_CASE("hostile packets are refused, whatever they hold") {
        std::mt19937 random(11);
        const auto received = receiver(key_of(1));
        const Bytes seed = sealed(*sender(key_of(1)), rtp_packet(1));
        const auto taken = [&](Bytes bytes) {
            bool authentic = false;
            for (const SrtpKind kind : {SrtpKind::rtp, SrtpKind::rtcp}) {
                authentic |= received->open(kind, bytes).verdict == SrtpVerdict::authentic;
            }
            return authentic;
        };
        for (int round = 0; round < 20'000; ++round) {
            Bytes bytes = round % 3 == 0 ? rtcp() : seed;
            for (std::uint32_t n = random() % 6 + 1; n > 0; --n) {
                bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
            }
            if (round % 2 == 0) bytes.resize(random() % bytes.size());
            if (bytes != seed) CHECK_FALSE(taken(bytes));
        }
        CHECK_FALSE(taken({}));
        CHECK(taken(seed));
    }

#if defined(__SANITIZE_ADDRESS__) && TRUNKLINE_HAVE_CRYPTO
    namespace {

    thread_local std::uint64_t allocations = 0;
    void count_allocation(const volatile void*, std::size_t) {
        ++allocations;
    }
    void ignore_release(const volatile void*) {}

    }  // namespace

    TEST_CASE("no packet enters the allocator, but the first of an SSRC that was not announced") {
        REQUIRE(engine::srtp_accelerated());
        static const bool installed =
            __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_release) != 0;
        REQUIRE(installed);
        for (const SrtpSuite suite : suites) {
            const auto sent = sender(key_of(1, suite));
            const auto received = receiver(key_of(1, suite));
            std::vector<Bytes> packets;
            for (std::uint16_t n = 0; n < 100; ++n) {
                packets.push_back(n % 2 == 0 ? rtp_packet(n) : rtcp());
                packets.back().reserve(256);
            }
            for (std::size_t n = 0; n < packets.size(); ++n) {
                const SrtpKind kind = n % 2 == 0 ? SrtpKind::rtp : SrtpKind::rtcp;
                Bytes& packet = packets[n];
                const std::size_t size = packet.size();
                packet.resize(size + SrtpContext::max_growth_bytes);
                allocations = 0;
                const std::size_t sealed_bytes = sent->protect(kind, packet, size);
                CHECK(allocations == 0);
                allocations = 0;
                const SrtpOpened opened = received->open(kind, std::span(packet).first(sealed_bytes));
                CHECK(allocations <= (n == 0 ? 8U : 0U));
                CHECK(opened.size_bytes == size);
            }
        }
    }
#endif
}

#endif
