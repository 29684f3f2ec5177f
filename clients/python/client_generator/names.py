"""Names of resources, methods and classes of the client, from those of the OpenAPI document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["method_name", "resource_name", "schema_names"]

# Tags whose attribute on the client is not the tag itself.
_RESOURCES: Final = {
    "carrier trunks": "trunks",
    "messaging webhooks": "webhook_endpoints",
    "phone numbers": "numbers",
    "tools administration": "managed_tools",
    "tools usage": "tool_usage",
    "voice OTP": "otp",
    "voice agents": "agents",
    "voice assistant": "assistant",
    "voice assistant keys": "assistant_keys",
    "voice assistant webhooks": "assistant_webhooks",
    "webhook subscriptions": "subscriptions",
}
# Operations whose name would say too much, or the same as another's. None: another one does the same.
_METHODS: Final[Mapping[str, str | None]] = {
    "call_from_sandbox": "call",
    "create_stream_call": None,
    "get_call": None,
    "get_call_by_sid": "get",
    "get_chat_message": "get",
    "list_account_calls": None,
    "list_chat_messages": "list",
    "list_contacts_of_list": "list_contacts",
    "list_otps": "list",
    "update_live_call": "update",
}
_VERBS: Final = {"list"}


def resource_name(tag: str) -> str:
    """Attribute of the client that has the operations of a tag."""
    return _RESOURCES.get(tag) or re.sub(r"\W+", "_", tag.lower())


def method_name(operation_id: str, resource: str) -> str | None:
    """Return the operation's name without the words of its resource; None if another one does the same."""
    if operation_id in _METHODS:
        return _METHODS[operation_id]
    nouns = {form for word in resource.split("_") for form in (word, word.removesuffix("s"))}
    words = operation_id.split("_")
    kept = [word for at, word in enumerate(words) if word not in nouns or (at == 0 and word in _VERBS)]
    return "_".join(kept) or "get"


def schema_names(schemas: Iterable[str]) -> dict[str, str]:
    """Class of each schema: its name, without ``Object`` and the path of a module where that stays clear."""
    listed = sorted(schemas)
    clear = {name: name.rsplit("__", 1)[-1] for name in listed}
    counts = Counter(clear.values())
    for name in listed:
        if counts[clear[name]] > 1 and "__" in name:
            module = name.split("__")[-2]
            clear[name] = module.title().replace("_", "") + clear[name]
    taken = set(clear.values())
    short = {name: found.removesuffix("Object") or found for name, found in clear.items()}
    again = Counter(short.values())
    return {
        name: clear[name] if again[found] > 1 or (found in taken and found != clear[name]) else found
        for name, found in short.items()
    }
