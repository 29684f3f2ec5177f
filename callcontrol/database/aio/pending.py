"""State that waits for the writer: the newest value for each key."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from callcontrol.database.aio.database import Operation

V = TypeVar("V")


class Pending(Generic[V]):
    """
    Values by key that the next transaction writes; a ``Source`` of the writer.

    A value replaces an earlier one of its key, also one that comes back from a failed transaction.

    Args:
        write: Returns the operation that writes values.
        lost: Called with values that can never be stored, and with the error; they are dropped.
        done: Called with the result of the operation once it is durable.
    """

    def __init__(
        self,
        write: Callable[[Sequence[V]], Operation[Any]],
        lost: Callable[[Mapping[str, V], Exception], None],
        done: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._write = write
        self._lost = lost
        self._done = done
        self._values: dict[str, V] = {}
        self._taken: dict[str, V] = {}

    def __len__(self) -> int:
        return len(self._values) + len(self._taken)

    def get(self, key: str) -> V | None:
        """The newest value of a key that is not durable yet."""
        return self._values.get(key) or self._taken.get(key)

    def values(self) -> Iterator[V]:
        """The values that are not durable yet."""
        return chain(self._taken.values(), self._values.values())

    def put(self, key: str, value: V) -> None:
        """Hold a value."""
        self._values[key] = value

    def take(self) -> dict[str, V]:
        """Remove and return the values, for another transaction."""
        taken, self._values = self._values, {}
        return taken

    def put_back(self, taken: Mapping[str, V]) -> None:
        """Hold values again that were not written, except for those with a newer one."""
        self._values = {**taken, **self._values}

    def drain(self) -> Operation[Any] | None:
        """An operation that writes all values; None without any."""
        if not self._values:
            return None
        self._taken = self.take()
        return self._write(list(self._taken.values()))

    def written(self, result: Any) -> None:
        """Drop the values, which are durable now."""
        self._taken = {}
        self._done(result)

    def restore(self) -> None:
        """Hold the values again that ``drain`` took."""
        taken, self._taken = self._taken, {}
        self.put_back(taken)

    def rejected(self, error: Exception) -> None:
        """Drop the values that ``drain`` took."""
        taken, self._taken = self._taken, {}
        self._lost(taken, error)
