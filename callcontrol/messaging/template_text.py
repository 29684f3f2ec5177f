"""The body of a template: its variables ``{{1}}`` to ``{{n}}``."""

import re
from typing import Final

__all__ = ["MAX_BODY_CHARACTERS", "MAX_VARIABLES", "BodyError", "variables_in"]

MAX_BODY_CHARACTERS: Final = 1024
MAX_VARIABLES: Final = 50

_VARIABLE: Final = re.compile(r"\{\{([1-9][0-9]{0,3})\}\}")
_BRACES: Final = re.compile(r"\{\{|\}\}")
_SHOWN: Final = 12


class BodyError(ValueError):
    """The body is invalid; the message names the error and its place."""


def variables_in(body: str) -> int:
    """
    Number of variables of a body, which has each number from 1 to the result at least once, in any order.

    A variable is a number in two pairs of braces with nothing else between them. Single braces are text.

    Raises:
        BodyError: Double braces belong to no variable, a number is left out, or there are too many.
    """
    end = 0
    numbers: set[int] = set()
    for found in _VARIABLE.finditer(body):
        _check_text(body, end, found.start())
        numbers.add(int(found[1]))
        end = found.end()
    _check_text(body, end, len(body))
    count = max(numbers, default=0)
    if count > MAX_VARIABLES:
        raise BodyError(f"has the variable {{{{{count}}}}}; there may be {MAX_VARIABLES} at most")
    left_out = next((number for number in range(1, count) if number not in numbers), None)
    if left_out is not None:
        raise BodyError(
            f"has a variable {{{{{count}}}}} but no {{{{{left_out}}}}}; number them from 1 without gaps"
        )
    return count


def _check_text(body: str, start: int, end: int) -> None:
    """Refuse double braces in the text between variables."""
    found = _BRACES.search(body, start, end)
    if found is not None:
        place = found.start()
        shown = body[place : place + _SHOWN].split("\n")[0]
        raise BodyError(
            f"has {shown!r} at character {place + 1}, which is no variable; write variables as {{{{1}}}}"
        )
