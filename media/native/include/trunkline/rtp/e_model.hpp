#pragma once

#include "trunkline/codec/format.hpp"

namespace trunkline::rtp {

/// Impairment of a codec by itself, and its robustness to lost packets (ITU-T G.113, appendix I).
struct Impairment {
    double ie = 0;
    double bpl = 0;
};

/// On the scale for telephones: a wideband codec counts no better than G.711 without loss.
Impairment impairment_of(codec::Codec codec);

/// Impairments of speech in transit.
struct Path {
    double loss = 0;         ///< Share of packets that could not be played, 0 to 1.
    double burst_ratio = 1;  ///< How much longer losses in a row are than if packets were lost at random.
    double delay_ms = 0;     ///< From mouth to ear, one way.
};

/// Transmission rating, 0 to 93.2, with the default values of ITU-T G.107 for all that is not known here, and
/// echo taken as cancelled.
double transmission_rating(Impairment impairment, const Path& path);

/// Mean opinion score of a conversation, 1 to 4.5, estimated from a rating (ITU-T G.107, annex B).
double mean_opinion_score(double rating);

}  // namespace trunkline::rtp
