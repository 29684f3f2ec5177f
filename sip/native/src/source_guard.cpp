#include "trunkline/signalling/source_guard.hpp"

#include <algorithm>
#include <cmath>

#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/scanners.hpp"

namespace trunkline::signalling {

namespace {

constexpr double ns_per_s = 1e9;
/// Interval of asking the application again about an unknown source: it may have become a gateway.
constexpr std::int64_t recheck_ns = 1'000'000'000;
constexpr std::uint32_t most_doublings = 30;

std::int64_t to_ns(double seconds) {
    return std::llround(seconds * ns_per_s);
}

double to_s(std::int64_t ns) {
    return static_cast<double>(ns) / ns_per_s;
}

/// The time from one moment to another; the clocks of two threads may differ a little.
double passed_s(std::int64_t from_ns, std::int64_t to_ns) {
    return to_s(std::max<std::int64_t>(0, to_ns - from_ns));
}

}  // namespace

std::string_view name_of(Reason reason) {
    constexpr std::array<std::string_view, reasons> names = {
        "rate", "crowd", "banned", "scanner", "malformed", "stranger", "credentials", "overload",
    };
    return names[static_cast<std::size_t>(reason)];
}

SourceGuard::SourceGuard(const SourceLimits& limits)
    : limits_(limits),
      trusted_until_ns_(limits.max_sources),
      unknown_(limits.max_sources),
      failures_(limits.max_sources),
      crowd_{limits.crowd_burst, 0} {}

bool SourceGuard::Bucket::use(double rate_per_s, double burst, std::int64_t now_ns) {
    tokens = std::min(burst, tokens + passed_s(at_ns, now_ns) * rate_per_s);
    at_ns = now_ns;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
}

// Before a message is parsed.

SourceGuard::Answer SourceGuard::judge(std::string_view data, const Endpoint& remote, bool is_datagram,
                                       std::int64_t now_ns, Trust trust) {
    const std::lock_guard lock(mutex_);
    const Source host = Source::host_of(remote);
    if (is_own(host, remote)) return Answer::unknown;
    if (known_.contains(host)) return Answer::known;
    const Source source = host.judged();
    if (const auto answer = judge_banned(host, source, now_ns, trust)) return *answer;
    if (has_earned_trust(host, now_ns) || trust == Trust::yes) {
        add_known(host);
        return Answer::known;
    }
    const Unknown* const unknown = unknown_.find(source);
    const bool is_due = unknown == nullptr || now_ns - unknown->checked_at_ns >= recheck_ns;
    if (is_due && trust == Trust::unasked) return Answer::ask;
    if (unknown == nullptr && trust == Trust::later) return Answer::ask;
    if (trust == Trust::no) enter(source, now_ns).checked_at_ns = now_ns;
    if (severe_ && is_datagram && data.starts_with("INVITE ")) {
        reject(Reason::overload);
        return Answer::drop;
    }
    return judge_unknown(source, data, now_ns);
}

SourceGuard::Answer SourceGuard::judge_unknown(const Source& source, std::string_view data,
                                               std::int64_t now_ns) {
    if (!enter(source, now_ns).bucket.use(limits_.rate_per_s, limits_.burst, now_ns)) {
        score(source, 1, Reason::rate, now_ns);
        return Answer::drop;
    }
    if (!crowd_.use(limits_.crowd_rate_per_s, limits_.crowd_burst, now_ns)) {
        reject(Reason::crowd);
        return Answer::drop;
    }
    if (names_scanner(data)) {
        reject(Reason::scanner);
        ban(source, Reason::scanner, now_ns);
        return Answer::drop;
    }
    return Answer::unknown;
}

std::optional<SourceGuard::Answer> SourceGuard::judge_banned(const Source& host, const Source& source,
                                                             std::int64_t now_ns, Trust trust) {
    const auto found = bans_.find(source);
    if (found == bans_.end() || now_ns >= found->second.until_ns) return std::nullopt;
    BanRecord& record = found->second;
    if (now_ns - record.checked_at_ns >= recheck_ns && trust != Trust::later) {
        if (has_earned_trust(host, now_ns)) trust = Trust::yes;
        if (trust == Trust::unasked) return Answer::ask;
        record.checked_at_ns = now_ns;
        if (trust == Trust::yes) {
            lift(source);
            add_known(host);
            return Answer::known;
        }
    }
    reject(Reason::banned);
    return Answer::drop;
}

SourceGuard::Answer SourceGuard::judge_connection(const Endpoint& remote, std::int64_t now_ns, Trust trust) {
    const std::lock_guard lock(mutex_);
    const Source host = Source::host_of(remote);
    if (known_.contains(host)) return Answer::known;
    return judge_banned(host, host.judged(), now_ns, trust).value_or(Answer::unknown);
}

SourceGuard::Answer SourceGuard::judge_host(const Endpoint& remote, std::int64_t now_ns, Trust trust) {
    const std::lock_guard lock(mutex_);
    const Source host = Source::host_of(remote);
    if (known_.contains(host)) return Answer::known;
    if (has_earned_trust(host, now_ns) || trust == Trust::yes) {
        add_known(host);
        return Answer::known;
    }
    return trust == Trust::unasked ? Answer::ask : Answer::unknown;
}

bool SourceGuard::knows(const Endpoint& remote) const {
    const std::lock_guard lock(mutex_);
    return known_.contains(Source::host_of(remote));
}

void SourceGuard::drop(Reason reason) {
    const std::lock_guard lock(mutex_);
    reject(reason);
}

bool SourceGuard::has_earned_trust(const Source& host, std::int64_t now_ns) {
    const std::int64_t* const until_ns = trusted_until_ns_.find(host);
    return until_ns != nullptr && now_ns < *until_ns;
}

void SourceGuard::add_known(const Source& host) {
    if (known_.size() >= limits_.max_sources) known_.clear();  // A trusted network may be larger than memory.
    known_.insert(host);
    unknown_.erase(host.judged());
}

SourceGuard::Unknown& SourceGuard::enter(const Source& source, std::int64_t now_ns) {
    const bool is_new = unknown_.find(source) == nullptr;
    Unknown& unknown = unknown_.use(source);
    if (is_new) unknown = {{limits_.burst, now_ns}, 0, now_ns, now_ns, std::nullopt};
    return unknown;
}

// After it was parsed.

bool SourceGuard::may_answer(const Endpoint& remote, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    const Source source = Source::host_of(remote).judged();
    const auto last_ns = enter(source, now_ns).answered_at_ns;
    score(source, 1, Reason::stranger, now_ns);
    if (!limits_.answer_unknown_sources) return false;
    if (last_ns && now_ns - *last_ns < to_ns(limits_.answer_interval_s)) return false;
    if (Unknown* const unknown = unknown_.find(source)) unknown->answered_at_ns = now_ns;
    return true;
}

void SourceGuard::on_malformed(const Endpoint& remote, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    score(Source::host_of(remote).judged(), limits_.malformed_score, Reason::malformed, now_ns);
}

void SourceGuard::trust(const Endpoint& remote, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    earn_trust(Source::host_of(remote), now_ns);
}

void SourceGuard::trust_sender(std::string_view data, const Endpoint& remote, std::int64_t now_ns) {
    const Endpoint origin = origin_of(data, remote);
    const std::lock_guard lock(mutex_);
    const Source host = Source::host_of(origin);
    if (origin.size != 0 && !is_own(host, origin)) earn_trust(host, now_ns);
}

bool SourceGuard::is_own(const Source& host, const Endpoint& remote) const {
    return own_ && own_->first == host && own_->second == port_of(remote);
}

void SourceGuard::earn_trust(const Source& host, std::int64_t now_ns) {
    if (known_.contains(host)) return;
    trusted_until_ns_.use(host) = now_ns + to_ns(limits_.trust_s);
    lift(host.judged());
    add_known(host);
}

void SourceGuard::on_auth_failure(const Endpoint& remote, bool is_trusted, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    reject(Reason::credentials);
    const Source host = Source::host_of(remote), source = host.judged();
    Failures& failures = failures_.use(source);
    const bool is_recent = now_ns - failures.at_ns < to_ns(limits_.auth_memory_s);
    failures.count = is_recent ? failures.count + 1 : 1;
    failures.at_ns = now_ns;
    if (failures.count <= limits_.slow_after_failures || is_trusted) return;
    trusted_until_ns_.erase(host);
    known_.erase(host);
    if (failures.count >= limits_.max_auth_failures) {
        failures_.erase(source);
        ban(source, Reason::credentials, now_ns);
    } else {
        Bucket& bucket = enter(source, now_ns).bucket;
        bucket.tokens = std::min(bucket.tokens, 1 - limits_.slow_s * limits_.rate_per_s);
    }
}

void SourceGuard::on_auth_success(const Endpoint& remote, std::int64_t now_ns) {
    {
        const std::lock_guard lock(mutex_);
        failures_.erase(Source::host_of(remote).judged());
    }
    trust(remote, now_ns);
}

void SourceGuard::score(const Source& source, double points, Reason reason, std::int64_t now_ns) {
    reject(reason);
    Unknown& unknown = enter(source, now_ns);
    const double faded = passed_s(unknown.scored_at_ns, now_ns) * limits_.score_decay_per_s;
    unknown.score = std::max(0.0, unknown.score - faded) + points;
    unknown.scored_at_ns = now_ns;
    if (unknown.score >= limits_.ban_score) ban(source, reason, now_ns);
}

// Bans.

void SourceGuard::ban(const Source& source, Reason reason, std::int64_t now_ns) {
    auto& entry = *bans_.try_emplace(source).first;
    BanRecord& record = entry.second;
    ends_.erase(&entry);
    if (now_ns - record.until_ns > to_ns(limits_.ban_memory_s)) record.count = 0;
    const double base_s = reason == Reason::credentials ? limits_.auth_ban_s : limits_.ban_s;
    const double doubled_s = std::ldexp(base_s, static_cast<int>(std::min(record.count, most_doublings)));
    const double for_s = std::min(limits_.max_ban_s, doubled_s);
    ++record.count;
    record.until_ns = now_ns + to_ns(for_s);
    record.checked_at_ns = now_ns;
    ends_.insert(&entry);
    unknown_.erase(source);
    if (told_.size() < most_bans_told) {
        told_.push_back({source.text(), reason, for_s, record.count});
    } else {
        ++untold_;
    }
    if (bans_.size() > limits_.max_sources) lift((*ends_.begin())->first);
}

void SourceGuard::lift(Source source) {
    const auto found = bans_.find(source);
    if (found == bans_.end()) return;
    ends_.erase(&*found);
    bans_.erase(found);
}

// Settings that change.

void SourceGuard::set_own(const std::optional<Endpoint>& own) {
    const std::lock_guard lock(mutex_);
    own_.reset();
    if (own) own_.emplace(Source::host_of(*own), port_of(*own));
}

void SourceGuard::set_severe(bool severe) {
    const std::lock_guard lock(mutex_);
    severe_ = severe;
}

void SourceGuard::refresh(std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    known_.clear();
    while (trusted_until_ns_.oldest() != nullptr && trusted_until_ns_.oldest()->second <= now_ns)
        trusted_until_ns_.erase(trusted_until_ns_.oldest()->first);
}

// What there is.

std::vector<std::pair<std::string, double>> SourceGuard::banned(std::int64_t now_ns) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::string, double>> found;
    for (const auto& [source, record] : bans_) {
        if (now_ns < record.until_ns) found.emplace_back(source.text(), to_s(record.until_ns - now_ns));
    }
    return found;
}

std::vector<std::string> SourceGuard::known() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const Source& host : known_)
        found.push_back(host.text());
    return found;
}

std::array<std::uint64_t, reasons> SourceGuard::rejected() const {
    const std::lock_guard lock(mutex_);
    return rejected_;
}

std::pair<std::vector<Ban>, std::uint64_t> SourceGuard::take_bans() {
    const std::lock_guard lock(mutex_);
    return {std::exchange(told_, {}), std::exchange(untold_, 0)};
}

std::size_t SourceGuard::largest() const {
    const std::lock_guard lock(mutex_);
    return std::max(
        {known_.size(), trusted_until_ns_.size(), unknown_.size(), failures_.size(), bans_.size()});
}

}  // namespace trunkline::signalling
