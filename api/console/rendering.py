"""
Rendering of the console's pages: templates, texts, static files and their headers.

Every value in a template is escaped; what a page shows from calls, webhooks and messages is hostile text.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from callcontrol.clock import timestamp

__all__ = ["HEADERS", "POLICY", "STATIC", "refusal_text", "render", "static_response", "texts_of"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of every page: this origin alone, and nothing inline."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
}
"""Headers of every page."""

_MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_AS_LONG_AS_IT_LIKES: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """Static files by their names, and the digest of all, which is part of their addresses."""

    version: str
    files: Mapping[str, bytes]

    @classmethod
    def load(cls) -> StaticFiles:
        """Read the files of the package."""
        folder = resources.files("api.console").joinpath("static")
        files = {
            entry.name: entry.read_bytes()
            for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
            if "." + entry.name.rpartition(".")[2] in _MEDIA_TYPES
        }
        digest = hashlib.sha256()
        for name, content in files.items():
            digest.update(name.encode() + b"\0" + content)
        return cls(digest.hexdigest()[:16], files)


STATIC: Final = StaticFiles.load()
"""The static files of the console."""


def static_response(version: str, name: str) -> web.Response | None:
    """Response with a static file; None if there is none of this name."""
    content = STATIC.files.get(name)
    if content is None:
        return None
    media_type = _MEDIA_TYPES["." + name.rpartition(".")[2]]
    response = web.Response(body=content, content_type=media_type, charset="utf-8", headers=HEADERS)
    # A page of an earlier version gets the present file, and asks again next time.
    response.headers["Cache-Control"] = _AS_LONG_AS_IT_LIKES if version == STATIC.version else "no-store"
    return response


@cache
def texts_of(name: str) -> Mapping[str, Any]:
    """Texts of a module of pages, from ``texts/NAME.toml``."""
    path = resources.files("api.console").joinpath("texts", f"{name}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def refusal_text(name: str, **values: object) -> str:
    """Sentence of a refusal, from ``texts/refusals.toml``, with its values filled in."""
    text = texts_of("refusals")[name]
    assert isinstance(text, str)
    return text.format(**values)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Render a template of ``templates/``."""
    return _environment().get_template(template).render(values)


class _Environment(Environment):
    """Environment in which keys of a mapping go before its methods, so that a text may be named `copy`."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the value of ``obj.attribute`` in a template."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


@cache
def _environment() -> Environment:
    environment = _Environment(
        loader=PackageLoader("api.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"moment": _moment, "duration": duration, "rupees": rupees, "bytes": _size}
    environment.policies["json.dumps_kwargs"] = {}
    environment.globals["common"] = texts_of("common")
    return environment


def _moment(at: datetime | None) -> Markup:
    """Time element in UTC; a script shows it in the zone of the browser."""
    if at is None:
        return Markup("&ndash;")
    shown = f"{at:%d %b %Y, %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(timestamp(at), shown)


def duration(seconds: float | None) -> str:
    """Duration as m:ss, or h:mm:ss."""
    if seconds is None:
        return "\N{EN DASH}"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def rupees(paise: int | None) -> str:
    """Amount in rupees."""
    return "\N{EN DASH}" if paise is None else f"\N{INDIAN RUPEE SIGN}{paise / 100:,.2f}"


def _size(count: int | None) -> str:
    if count is None:
        return "\N{EN DASH}"
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{count / 1000:.0f} kB"
