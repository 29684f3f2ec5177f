"""Work that one node does for all that share a database."""

from collections.abc import Awaitable, Callable

Tell = Callable[[bool], None]
"""Called when this node gets a duty (True) or loses it (False)."""


class Duty:
    """
    Work that one node does for all: this one while ``held``.

    A server without others has it from the start. Among several a node asks for it once it is followed, and
    loses it before its lease is over: until then no other node gets it.

    Attributes:
        name: Name in the database.
        held: True while it is this node's.
        wanted: True from ``follow`` to ``release``.
    """

    def __init__(
        self, name: str, *, held: bool = True, release: Callable[[str], Awaitable[None]] | None = None
    ) -> None:
        self.name = name
        self.held = held
        self.wanted = False
        self._release = release
        self._tell: Tell | None = None

    def follow(self, tell: Tell) -> None:
        """Ask for the duty; ``tell`` gets each later change."""
        self._tell = tell
        self.wanted = True

    def assign(self, held: bool) -> None:
        """Set if the duty is this node's."""
        if held != self.held and (self.wanted or not held):
            self.held = held
            if self._tell is not None:
                self._tell(held)

    async def release(self) -> None:
        """Leave the duty to another node, at once."""
        self.wanted = False
        if self._release is not None and self.held:
            self.assign(False)
            await self._release(self.name)
