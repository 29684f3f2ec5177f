#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "support.hpp"

namespace trunkline::tests {

/// What a simulated network and a simulated sender do to a stream of packets.
struct Impairment {
    double loss = 0;         ///< Share of packets that never arrive.
    double burst = 0;        ///< Chance that the packet after a lost one is lost too.
    double jitter_ms = 0;    ///< The delay varies evenly by so much to both sides, packet by packet.
    double spikes = 0;       ///< Share of packets that take up to 300 ms longer.
    double duplication = 0;  ///< Share of packets that arrive twice.
    double drift_ppm = 0;    ///< By how much the sender's clock runs fast.
    double base_ms = 50;     ///< Delay of the path without jitter.
    std::uint32_t packet_ms = 20;
    /// Of the sender's time, in seconds: whether it talks. One that does not sends nothing (DTX).
    std::function<bool(double)> talks;
};

/// One packet on its way.
struct Arrival {
    std::int64_t at_ns = 0;
    std::int64_t sent_ns = 0;  ///< When the first of its samples was spoken, by our clock.
    std::uint32_t number = 0;  ///< Of its span of the sender's time.
    std::uint16_t sequence = 0;
    bool marker = false;

    bool operator>(const Arrival& other) const { return at_ns > other.at_ns; }
};

/// Makes packets in the order they arrive, the same ones for the same seed.
class ImpairedSender {
  public:
    ImpairedSender(Impairment impairment, std::uint32_t seed)
        : impairment_(std::move(impairment)), random_(seed) {}

    /// The packets that arrive until then, in order, with the time of each.
    template <typename Take>
    void deliver(std::int64_t until_ns, Take&& take) {
        // A packet is made long before it can arrive, so that those behind it may overtake.
        while (due_ns(next_) <= until_ns + 1000 * ms) {
            send(next_++);
        }
        while (!under_way_.empty() && under_way_.top().at_ns <= until_ns) {
            const Arrival arrival = under_way_.top();
            under_way_.pop();
            take(arrival);
        }
    }

    /// When a span of the sender's time begins, by our clock.
    std::int64_t spoken_ns(std::uint32_t number) const {
        const double seconds = number * (impairment_.packet_ms / 1000.0) / (1 + impairment_.drift_ppm / 1e6);
        return std::llround(seconds * 1e9);
    }

    std::uint32_t lost() const { return lost_; }

  private:
    std::int64_t due_ns(std::uint32_t number) const { return spoken_ns(number + 1); }

    void send(std::uint32_t number) {
        if (impairment_.talks && !impairment_.talks(number * impairment_.packet_ms / 1000.0)) {
            paused_ = true;
            return;
        }
        const std::uint16_t sequence = sequence_++;
        const bool marker = std::exchange(paused_, false);
        const bool loses =
            share() < (losing_ ? std::max(impairment_.burst, impairment_.loss) : impairment_.loss);
        losing_ = loses;
        if (loses) {
            ++lost_;
            return;
        }
        const int copies = share() < impairment_.duplication ? 2 : 1;
        for (int n = 0; n < copies; ++n) {
            double delay_ms = impairment_.base_ms + (2 * share() - 1) * impairment_.jitter_ms;
            if (share() < impairment_.spikes) delay_ms += 300 * share();
            const std::int64_t at_ns = due_ns(number) + std::llround(delay_ms * 1e6);
            under_way_.push({at_ns, spoken_ns(number), number, sequence, marker});
        }
    }

    double share() { return std::uniform_real_distribution<double>(0, 1)(random_); }

    Impairment impairment_;
    std::mt19937 random_;
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> under_way_;
    std::uint32_t next_ = 0;
    std::uint32_t lost_ = 0;
    std::uint16_t sequence_ = 65000;
    bool paused_ = true;
    bool losing_ = false;
};

}  // namespace trunkline::tests
