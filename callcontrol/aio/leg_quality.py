"""How good a leg sounded, from what its stream measured."""

from callcontrol.aio.media_leg import LegMedia
from callcontrol.models import Quality
from callcontrol.quality import mos


def quality_of(media: LegMedia) -> Quality:
    """What the received media of a leg was like."""
    stats = media.stream.stats()
    codec = media.remote.codec if media.remote is not None else None
    expected = stats.packets_in + stats.lost
    if stats.packets_in == 0:
        return Quality(codec=codec)
    loss_pct = round(100.0 * stats.lost / expected, 2)
    jitter_ms = round(stats.jitter_ms, 2)
    return Quality(mos(loss_pct, jitter_ms), jitter_ms, loss_pct, codec)
