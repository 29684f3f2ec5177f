"""How good a call sounded, from what its stream measured."""

from typing import Final

_PLAYOUT_DELAY_MS: Final = 60.0  # codec, packet and jitter buffer at the far end, for want of a measurement
_G711_LOSS_ROBUSTNESS: Final = 4.3  # Bpl of G.711 without concealment, ITU-T G.113 appendix I


def mos(loss_pct: float, jitter_ms: float) -> float:
    """
    The mean opinion score of a G.711 stream, 1.0 to 4.41, by the E-model with default values.

    The delay is not measured but assumed; jitter counts twice, as the buffer that evens it out.

    Source: ITU-T G.107, G.113.
    """
    delay_ms = _PLAYOUT_DELAY_MS + 2.0 * jitter_ms
    delay_impairment = 0.024 * delay_ms + (0.11 * (delay_ms - 177.3) if delay_ms > 177.3 else 0.0)
    loss_impairment = 95.0 * loss_pct / (loss_pct + _G711_LOSS_ROBUSTNESS)
    rating = 93.2 - delay_impairment - loss_impairment
    if rating <= 0.0:
        return 1.0
    score = 1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6
    return round(min(max(score, 1.0), 4.5), 2)
