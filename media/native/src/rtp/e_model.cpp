#include "trunkline/rtp/e_model.hpp"

#include <algorithm>
#include <cmath>

namespace trunkline::rtp {

namespace {

/// The rating of G.711 without loss and delay, by the default values of ITU-T G.107.
constexpr double best_rating = 93.2;

/// Impairment by delay beyond 100 ms: Idd of ITU-T G.107, 7.4.
double delay_impairment(double delay_ms) {
    if (delay_ms <= 100) return 0;
    const double x = std::log2(delay_ms / 100);
    const auto root = [](double value) { return std::pow(1 + std::pow(value, 6), 1.0 / 6); };
    return 25 * (root(x) - 3 * root(x / 3) + 2);
}

/// Impairment by codec and loss: Ie,eff of ITU-T G.107, 7.5.
double equipment_impairment(Impairment impairment, double loss, double burst_ratio) {
    const double percent = 100 * std::clamp(loss, 0.0, 1.0);
    const double burst = std::max(burst_ratio, 1.0);
    if (percent == 0) return impairment.ie;
    return impairment.ie + (95 - impairment.ie) * percent / (percent / burst + impairment.bpl);
}

}  // namespace

Impairment impairment_of(codec::Codec codec) {
    switch (codec) {
        case codec::Codec::pcmu:
        case codec::Codec::pcma:
        // The same samples, concealed the same way.
        case codec::Codec::l16:
            return {0, 25.1};
        // G.113 gives no value on this scale. Concealed alike, but a lost packet spoils the adaptation of
        // the predictor for a while.
        case codec::Codec::g722:
            return {0, 20};
        // Nor for Opus; what FEC recovered is not lost, and what remains spoils the packets after it.
        case codec::Codec::opus:
            return {0, 20};
    }
    return {0, 25.1};
}

double transmission_rating(Impairment impairment, const Path& path) {
    const double rating = best_rating - delay_impairment(path.delay_ms) -
                          equipment_impairment(impairment, path.loss, path.burst_ratio);
    return std::clamp(rating, 0.0, best_rating);
}

double mean_opinion_score(double rating) {
    if (rating <= 0) return 1;
    if (rating >= 100) return 4.5;
    return std::max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6);
}

}  // namespace trunkline::rtp
