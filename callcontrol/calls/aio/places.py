"""Places of the legs of one call at trunks whose limits are counted over all servers."""

from callcontrol.ids import LegId
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.places import Limits, Place, first_leg, leg_of, limits_of


class LegPlaces:
    """
    Places of the legs of one call; each is left with its leg.

    Args:
        places: None where limits are counted in memory alone; then no leg needs a place.
    """

    def __init__(self, places: TrunkPlaces | None, call_sid: str) -> None:
        self._places = places
        self._call_sid = call_sid
        self._first: Place | None = None
        self._numbers = 0
        self._waiting: set[LegId] = set()
        self._held: dict[LegId, Place] = {}

    def grant(self, limits: Limits, leg: LegId | None = None) -> None:
        """Note the place taken with the call's record: of a leg, or of the one that is dialled first."""
        if limits:
            place = Place(first_leg(self._call_sid), limits)
            if leg is None:
                self._first = place
            else:
                self._held[leg] = place

    def needed(self, leg: LegId, carrier: Carrier, gateway: Gateway) -> Limits:
        """Limits under which a leg has to take a place before it is dialled; empty if there are none."""
        if self._first is not None:
            self._held[leg], self._first = self._first, None
            return ()
        return () if self._places is None else limits_of(carrier, gateway)

    async def take(self, leg: LegId, limits: Limits) -> bool | None:
        """Acquire a place for a leg; False if the trunk is at its limit, None if the leg was given up."""
        assert self._places is not None
        place = self._next(limits)
        self._waiting.add(leg)
        taken = await self._places.take(place)
        if leg not in self._waiting:
            if taken:
                self._places.leave(place)
            return None
        self._waiting.discard(leg)
        if taken:
            self._held[leg] = place
        return taken

    def note(self, leg: LegId, carrier: Carrier, gateway: Gateway) -> None:
        """Count a leg without a check: that of a caller who replaces a party."""
        limits = () if self._places is None else limits_of(carrier, gateway)
        if self._places is not None and limits:
            self._held[leg] = place = self._next(limits)
            self._places.note(place)

    def leave(self, leg: LegId) -> None:
        """Leave the place of a leg, or take none if it still waits for one."""
        self._waiting.discard(leg)
        place = self._held.pop(leg, None)
        if place is not None and self._places is not None:
            self._places.leave(place)

    def leave_all(self) -> None:
        """Leave all places: the call is over."""
        if self._first is not None and self._places is not None:
            self._places.leave(self._first)
            self._first = None
        self._waiting.clear()
        for leg in [*self._held]:
            self.leave(leg)

    def _next(self, limits: Limits) -> Place:
        self._numbers += 1
        return Place(leg_of(self._call_sid, self._numbers), limits)
