"""Commands and answers that pages show: their fenced blocks, as a reader pastes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.test_layering import ROOT

__all__ = ["Block", "agrees", "blocks", "commands", "documents", "in_order"]

_SHELL: Final = {"", "sh", "bash"}
# Known once something has happened, or of one kind of message only.
_MAY_BE_NULL: Final = re.compile(
    r"(_at|At|_sec|_seconds|_per_hour|price|cost|cause|_url|_until|^text|^template|^media|^interactive)$"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the line on which it begins, its section, its language and its text."""

    page: str
    line: int
    section: str
    language: str
    text: str

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        """True if it is pasted into a shell, and asks the server."""
        return self.language in _SHELL and re.search(r"\bcurl ", self.text) is not None


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    section, begun, language = "", 0, ""
    kept: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if begun:
                yield Block(str(page.relative_to(ROOT)), begun, section, language, "\n".join(kept))
                begun = 0
            else:
                begun, language, kept = number, line[3:].strip(), []
        elif begun:
            kept.append(line)
        elif line.startswith("#"):
            section = line.strip("# ")


def in_order() -> list[Path]:
    """The README, then the chapters of the API as their index lists them, each after those it builds upon."""
    index = ROOT / "docs" / "api" / "README.md"
    names = list(dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", index.read_text())))
    names.remove("campaigns.md")
    names.insert(names.index("templates.md") + 1, "campaigns.md")
    return [ROOT / "README.md", index, *(index.parent / name for name in names)]


def commands(text: str) -> Iterator[str]:
    """Split a block into commands: a line, and those that its quotes, backslashes and here documents join."""
    kept: list[str] = []
    quote, ends = "", ""
    for line in text.splitlines():
        kept.append(line)
        if ends:
            ends = "" if line == ends else ends
        else:
            quote = _open_quote(line, quote)
            here = re.search(r"<<'?(\w+)'?", line) if not quote else None
            ends = here[1] if here else ""
        if not quote and not ends and not line.endswith("\\"):
            command = "\n".join(kept).strip()
            kept = []
            if command and not command.startswith("#"):
                yield command


def _open_quote(line: str, quote: str) -> str:
    """Return the quote that is open at the end of a line."""
    escaped = False
    for index, letter in enumerate(line):
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#" and (index == 0 or line[index - 1] == " "):
            break
    return quote


def documents(text: str) -> list[Any]:
    """Read the JSON documents of a block, where dots stand for what is left out; none if it is not JSON."""
    text = re.sub(r",\s*\.\.\.(?=\s*})", ', "...": "..."', text)
    text = re.sub(r",\s*\.\.\.(?=\s*\])", "", text)
    decoder, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        try:
            document, end = decoder.raw_decode(text)
        except ValueError:
            return []
        found.append(document)
        text = text[end:].strip()
    return found


def agrees(shown: Any, found: Any, at: str = "body") -> str:
    """
    Compare an answer with what a page shows, by names and types; return the first difference, or nothing.

    A name `...` on the page stands for further names. Each item that a list shows is that of one found.
    """
    if isinstance(shown, dict) and isinstance(found, dict):
        return _objects_agree(shown, found, at)
    if isinstance(shown, list) and isinstance(found, list):
        return _lists_agree(shown, found, at)
    return "" if _kind(shown) == _kind(found) else f"{at} is {found!r}, shown as {shown!r}"


def _objects_agree(shown: dict[str, Any], found: dict[str, Any], at: str) -> str:
    names = shown.keys() - {"..."}
    if missing := sorted(names - found.keys()):
        return f"{at} has no {', '.join(missing)}: {sorted(found)}"
    if "..." not in shown and (more := sorted(found.keys() - names)):
        return f"{at} has {', '.join(more)} too"
    parts = (
        agrees(shown[name], found[name], f"{at}.{name}")
        for name in sorted(names)
        if None not in (shown[name], found[name]) or not _MAY_BE_NULL.search(name)
    )
    return next((difference for difference in parts if difference), "")


def _lists_agree(shown: list[Any], found: list[Any], at: str) -> str:
    if not shown or not found:
        return "" if shown == found else f"{at} is {found!r}, shown as {shown!r}"
    for place, item in enumerate(shown):
        differences = [agrees(item, other, f"{at}[{place}]") for other in found]
        if "" not in differences:
            return differences[min(place, len(found) - 1)]
    return ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__
