"""
Safe parser of small XML documents from untrusted servers.

A document must not have declarations or entities of its own; depth and number of elements are bounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

MAX_DEPTH: Final = 8
MAX_ELEMENTS: Final = 500

_MAX_ATTRIBUTES: Final = 40


class XmlError(ValueError):
    """A document that is not well formed, or exceeds a limit."""


@dataclass(slots=True)
class Element:
    """An element: its name and attributes, its direct text, and its child elements."""

    name: str
    attributes: Mapping[str, str]
    text: str = ""
    children: list["Element"] = field(default_factory=list)


def read_xml(document: bytes) -> Element:
    """
    The root element of a document; comments and processing instructions are ignored.

    Raises:
        XmlError: The document cannot be read.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    # Without declarations only the five entities of XML exist: nothing expands, nothing is fetched.
    parser.StartDoctypeDeclHandler = reader.declared
    try:
        parser.Parse(document, True)
    except XmlError:
        raise
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise XmlError(f"is no XML: {expat.ErrorString(error.code)} in {place}") from None
    except (ValueError, LookupError):
        # The encoding is unknown, or the document violates it.
        raise XmlError("is no XML: its encoding cannot be read; write it in UTF-8") from None
    if reader.root is None:
        raise XmlError("is no XML: it has no element")
    return reader.root


class _Reader:
    """Builds elements as the parser meets them."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= MAX_DEPTH:
            raise XmlError(f"must not nest deeper than {MAX_DEPTH}")
        if self._count > MAX_ELEMENTS:
            raise XmlError(f"must not have more than {MAX_ELEMENTS} elements")
        if len(attributes) > _MAX_ATTRIBUTES:
            raise XmlError(f"must not have more than {_MAX_ATTRIBUTES} attributes in an element")
        element = Element(name, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, name: str) -> None:
        self._open.pop()

    def characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def declared(self, *_: object) -> None:
        raise XmlError("must not have a DOCTYPE")
