#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "trunkline/signalling/flow.hpp"
#include "trunkline/signalling/fronts.hpp"
#include "trunkline/signalling/recent.hpp"
#include "trunkline/signalling/source.hpp"

namespace trunkline::signalling {

/// Limits of unknown sources, and bounds of the memory about sources: `sip.protection.rate_limits`
/// `.ProtectionSettings`, which says what each means.
struct SourceLimits {
    bool answer_unknown_sources = true;
    double answer_interval_s = 10;
    double rate_per_s = 10;
    double burst = 20;
    double crowd_rate_per_s = 500;
    double crowd_burst = 1000;
    double malformed_score = 5;
    double ban_score = 100;
    double score_decay_per_s = 0.5;
    double ban_s = 60;
    double max_ban_s = 3600;
    double ban_memory_s = 86'400;
    std::uint32_t slow_after_failures = 5;
    double slow_s = 1;
    std::uint32_t max_auth_failures = 20;
    double auth_memory_s = 600;
    double auth_ban_s = 300;
    double trust_s = 14'400;
    std::size_t max_sources = 10'000;
    Fronts fronts;
};

/// Why a message was not served.
enum class Reason : std::uint8_t {
    rate,
    crowd,
    banned,
    scanner,
    malformed,
    stranger,
    credentials,
    overload,
};
inline constexpr std::size_t reasons = 8;
std::string_view name_of(Reason reason);

/// A source that was just banned.
struct Ban {
    std::string source;
    Reason reason = Reason::rate;
    double for_s = 0;
    std::uint32_t count = 0;
};

/// The judge of every message before it is parsed, by its source; no I/O, no clock, bounded memory.
///
/// A source is *known* when the application trusts its address, or when it takes part in something. Any
/// other is *unknown*: it has a token bucket, a score and, in the end, a ban. Traffic never counts against a
/// known source, because its address may be forged. The application is asked by the caller: when
/// `Answer::ask` comes out, nothing has happened yet, and the caller asks and judges again with the answer.
/// Of an unknown source it is asked once a second at most. Any thread may call.
class SourceGuard {
  public:
    enum class Answer : std::uint8_t {
        /// The message is not to be parsed.
        drop,
        /// It is of an unknown source, and may be parsed.
        unknown,
        known,
        /// Only the application can tell.
        ask,
    };
    /// The application's word on a host.
    enum class Trust : std::uint8_t {
        unasked,
        /// Nobody can be asked now: of a source that was asked about before, the last word still counts.
        later,
        no,
        yes,
    };

    /// Bans that wait to be told; those beyond are only counted.
    static constexpr std::size_t most_bans_told = 64;

    explicit SourceGuard(const SourceLimits& limits);

    // Before a message is parsed.

    /// Where a message comes from; its source is judged by this, not by a front that forwards it.
    Endpoint origin_of(std::string_view data, const Endpoint& remote) const {
        return limits_.fronts.origin_of(data, remote);
    }
    Answer judge(std::string_view data, const Endpoint& remote, bool is_datagram, std::int64_t now_ns,
                 Trust trust = Trust::unasked);
    /// Judge a new connection: only a banned source gets none.
    Answer judge_connection(const Endpoint& remote, std::int64_t now_ns, Trust trust = Trust::unasked);
    /// Whether a host is known; asks the application unless it is known already.
    Answer judge_host(const Endpoint& remote, std::int64_t now_ns, Trust trust = Trust::unasked);
    /// True for a host that was found to be known, until `refresh`.
    bool knows(const Endpoint& remote) const;
    /// Count a message that is dropped for another reason than its source.
    void drop(Reason reason);

    // After it was parsed.

    /// Score the request of an unknown source; true when it gets its refusal, one per interval.
    bool may_answer(const Endpoint& remote, std::int64_t now_ns);
    void on_malformed(const Endpoint& remote, std::int64_t now_ns);
    /// Make a host known for `trust_s`, and lift its ban.
    void trust(const Endpoint& remote, std::int64_t now_ns);
    /// Trust the host that a message comes from, unless it is this process or one that a front does not name.
    void trust_sender(std::string_view data, const Endpoint& remote, std::int64_t now_ns);
    /// Count wrong credentials; a source that the application trusts is neither slowed nor banned.
    void on_auth_failure(const Endpoint& remote, bool is_trusted, std::int64_t now_ns);
    void on_auth_success(const Endpoint& remote, std::int64_t now_ns);

    // Settings that change.

    /// Admit this address and port, without trust in its host.
    void set_own(const std::optional<Endpoint>& own);
    /// Drop INVITEs of unknown sources over UDP.
    void set_severe(bool severe);
    /// Forget what the application has said, so that it is asked again, and drop expired trust.
    void refresh(std::int64_t now_ns);

    // What there is.

    /// Banned sources, each with the seconds left.
    std::vector<std::pair<std::string, double>> banned(std::int64_t now_ns) const;
    /// Hosts that were found to be known since the last `refresh`.
    std::vector<std::string> known() const;
    /// Messages that were not served, by reason.
    std::array<std::uint64_t, reasons> rejected() const;
    /// Bans since the last call; the number is of those that are left out.
    std::pair<std::vector<Ban>, std::uint64_t> take_bans();
    /// Entries of the largest table.
    std::size_t largest() const;

  private:
    struct Bucket {
        double tokens = 0;
        std::int64_t at_ns = 0;

        bool use(double rate_per_s, double burst, std::int64_t now_ns);
    };
    struct Unknown {
        Bucket bucket;
        double score = 0;
        std::int64_t scored_at_ns = 0;
        std::int64_t checked_at_ns = 0;
        std::optional<std::int64_t> answered_at_ns;
    };
    struct BanRecord {
        std::uint32_t count = 0;
        std::int64_t until_ns = 0;
        std::int64_t checked_at_ns = 0;
    };
    struct Failures {
        std::uint32_t count = 0;
        std::int64_t at_ns = 0;
    };
    template <class Value>
    using Table = Recent<Source, Value, Source::Hash>;
    using Bans = std::unordered_map<Source, BanRecord, Source::Hash>;

    struct BySoonestEnd {
        bool operator()(const Bans::value_type* left, const Bans::value_type* right) const {
            return std::pair(left->second.until_ns, left) < std::pair(right->second.until_ns, right);
        }
    };

    Answer judge_unknown(const Source& source, std::string_view data, std::int64_t now_ns);
    /// The answer for a source whose ban holds; nothing for one that is not banned.
    std::optional<Answer> judge_banned(const Source& host, const Source& source, std::int64_t now_ns,
                                       Trust trust);
    /// True while a host has the trust that it has earned.
    bool has_earned_trust(const Source& host, std::int64_t now_ns);
    bool is_own(const Source& host, const Endpoint& remote) const;
    void earn_trust(const Source& host, std::int64_t now_ns);
    void add_known(const Source& host);
    Unknown& enter(const Source& source, std::int64_t now_ns);
    void score(const Source& source, double points, Reason reason, std::int64_t now_ns);
    void ban(const Source& source, Reason reason, std::int64_t now_ns);
    void lift(Source source);
    void reject(Reason reason) { ++rejected_[static_cast<std::size_t>(reason)]; }

    const SourceLimits limits_;
    mutable std::mutex mutex_;
    std::unordered_set<Source, Source::Hash> known_;
    /// When the trust ends that a host has earned.
    Table<std::int64_t> trusted_until_ns_;
    Table<Unknown> unknown_;
    Table<Failures> failures_;
    Bans bans_;
    /// When the table of bans is full, the one that ends soonest gives way: a flood of forged sources brings
    /// short bans, which cannot drive out long ones.
    std::set<const Bans::value_type*, BySoonestEnd> ends_;
    /// Of all unknown sources together.
    Bucket crowd_;
    std::optional<std::pair<Source, std::uint16_t>> own_;
    bool severe_ = false;
    std::array<std::uint64_t, reasons> rejected_{};
    std::vector<Ban> told_;
    std::uint64_t untold_ = 0;
};

}  // namespace trunkline::signalling
