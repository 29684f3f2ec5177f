"""
Parser of the script of an agent, which reports every wrong value with its path.

An accepted script can be run to its end: all nodes that it names exist and are reached, and no cycle is
without a node that listens.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from callcontrol.agents.script import MAX_NODES, MAX_TEXT_CHARS, MAX_TURNS, VARIABLE
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models.scripts import DEFAULT_TURNS, FAILED, OUTCOMES, Forwarding, Listening, Node, Script
from callcontrol.routing.targets import normalise_number, parse_address

NODE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
KEYS: Final = re.compile(r"[0-9*#]{1,32}", re.ASCII)
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)

_NODE_FIELDS: Final = ("say", "gather", "transfer", "next", "hangup", "on")
_GATHER_FIELDS: Final = (
    "num_digits",
    "finish_on_key",
    "timeout_s",
    "barge_in",
    "retries",
    "retry_say",
    "variable",
)
_TRANSFER_FIELDS: Final = ("to", "caller_id", "timeout_s")
_DOES: Final = ("gather", "transfer", "next", "hangup")


def read_script(given: object, path: str = "script") -> Script:
    """
    Parse a JSON value as a script.

    Raises:
        ValidationFailed: Names every wrong value by its path (``script.nodes.menu.on.1``).
    """
    reader = _Reader()
    script = reader.script(path, given)
    if script is None or reader.errors:
        raise ValidationFailed(reader.errors)
    return script


def text_errors(path: str, text: str) -> list[FieldError]:
    """Errors in the variables of a text."""
    rest = VARIABLE.sub("", text)
    if "{{" in rest or "}}" in rest:
        message = "has braces that are no variable; write {{name}} or {{name|words for when it is not known}}"
        return [FieldError(path, message)]
    return []


class _Reader:
    """Parses one script and collects its errors."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def script(self, path: str, given: object) -> Script | None:
        fields = self._object(path, given, ("start", "max_turns", "nodes"))
        max_turns = int(
            self._number(f"{path}.max_turns", fields.get("max_turns"), DEFAULT_TURNS, 1, MAX_TURNS)
        )
        raw = fields.get("nodes")
        if not isinstance(raw, Mapping) or not 1 <= len(raw) <= MAX_NODES:
            self._wrong(f"{path}.nodes", f"must be an object with 1 to {MAX_NODES} nodes by their names")
            return None
        nodes: dict[str, Node] = {}
        for name, value in raw.items():
            if not isinstance(name, str) or NODE_NAME.fullmatch(name) is None:
                self._wrong(
                    f"{path}.nodes", "names must have 1 to 64 letters, digits, hyphens and underscores"
                )
                continue
            nodes[name] = self._node(f"{path}.nodes.{name}", value)
        start = fields.get("start", "start")
        if not isinstance(start, str) or start not in nodes:
            self._wrong(f"{path}.start", "must name a node; without it the node start is the first one")
            return None
        script = Script(nodes, start, max_turns)
        self._check_ways(path, script)
        return script

    def _node(self, path: str, given: object) -> Node:
        fields = self._object(path, given, _NODE_FIELDS)
        does = [name for name in _DOES if fields.get(name) not in (None, False)]
        if len(does) != 1:
            self._wrong(path, f"must have exactly one of {', '.join(_DOES)}")
        if fields.get("hangup") not in (None, False, True):
            self._wrong(f"{path}.hangup", "must be true")
        on = self._branches(f"{path}.on", fields.get("on"), does)
        listening = forwarding = None
        if "gather" in does:
            listening = self._listening(f"{path}.gather", fields["gather"], on)
        if "transfer" in does:
            forwarding = self._forwarding(f"{path}.transfer", fields["transfer"])
        then = fields.get("next") if "next" in does else None
        if then is not None and not isinstance(then, str):
            self._wrong(f"{path}.next", "must name a node")
            then = None
        return Node(self._text(f"{path}.say", fields.get("say")) or "", listening, forwarding, then, on)

    def _branches(self, path: str, given: object, does: list[str]) -> dict[str, str]:
        if given is None:
            if "gather" in does:
                self._wrong(path, "is required: it names the next node of each outcome")
            return {}
        if not isinstance(given, Mapping):
            self._wrong(path, "must be an object of outcomes and the nodes that they lead to")
            return {}
        branches: dict[str, str] = {}
        for outcome, node in given.items():
            where = f"{path}.{str(outcome)[:64]}"
            if not self._is_outcome(outcome, does):
                wanted = "failed" if "transfer" in does else f"keys, or one of {', '.join(OUTCOMES)}"
                self._wrong(where, f"is no outcome of this node; it may be {wanted}")
            elif not isinstance(node, str):
                self._wrong(where, "must name a node")
            else:
                branches[outcome] = node
        if "gather" in does and not set(branches) - {FAILED} and not self.errors:
            self._wrong(path, "must name the next node of at least one outcome")
        return branches

    @staticmethod
    def _is_outcome(outcome: object, does: list[str]) -> bool:
        if not isinstance(outcome, str):
            return False
        if "gather" in does:
            return outcome in OUTCOMES or KEYS.fullmatch(outcome) is not None
        return "transfer" in does and outcome == FAILED

    def _listening(self, path: str, given: object, on: Mapping[str, str]) -> Listening:
        fields = self._object(path, given, _GATHER_FIELDS)
        keys = [outcome for outcome in on if outcome not in OUTCOMES]
        longest = max((len(item) for item in keys), default=1)
        num_digits = int(self._number(f"{path}.num_digits", fields.get("num_digits"), longest, 1, 32))
        if num_digits < longest:
            self._wrong(f"{path}.num_digits", f"must be at least {longest}: that many keys lead somewhere")
        finish = fields.get("finish_on_key", "#")
        if finish not in ("", *"0123456789*#"):
            self._wrong(f"{path}.finish_on_key", "must be one key, or empty for none")
            finish = ""
        elif finish and any(finish in item for item in keys):
            if "finish_on_key" in fields:
                self._wrong(f"{path}.finish_on_key", "must be no key that leads somewhere itself")
            finish = ""
        barge_in = fields.get("barge_in", True)
        if not isinstance(barge_in, bool):
            self._wrong(f"{path}.barge_in", "must be true or false")
        variable = fields.get("variable")
        if variable is not None and (
            not isinstance(variable, str) or VARIABLE_NAME.fullmatch(variable) is None
        ):
            self._wrong(f"{path}.variable", "must be a name of letters, digits and underscores")
            variable = None
        return Listening(
            num_digits,
            str(finish),
            self._number(f"{path}.timeout_s", fields.get("timeout_s"), 5.0, 1, 60),
            bool(barge_in),
            int(self._number(f"{path}.retries", fields.get("retries"), 1, 0, 5)),
            self._text(f"{path}.retry_say", fields.get("retry_say")),
            variable,
        )

    def _forwarding(self, path: str, given: object) -> Forwarding:
        fields = self._object(path, given, _TRANSFER_FIELDS)
        to = self._address(f"{path}.to", fields.get("to"), sip=True)
        caller_id = fields.get("caller_id")
        if caller_id is not None:
            caller_id = self._address(f"{path}.caller_id", caller_id, sip=False)
        timeout_s = self._number(f"{path}.timeout_s", fields.get("timeout_s"), 30.0, 5, 120)
        return Forwarding(to, caller_id, timeout_s)

    def _address(self, path: str, given: object, *, sip: bool) -> str:
        """A number or address; one with variables is checked when their values are known."""
        if not isinstance(given, str) or not given:
            self._wrong(path, "must be a telephone number" + (" or a sip: address" if sip else ""))
            return ""
        if VARIABLE.search(given):
            self.errors += text_errors(path, given)
            return given
        try:
            return str(parse_address(given, field=path)) if sip else normalise_number(given, field=path)
        except ValidationFailed as refusal:
            self.errors += refusal.errors
            return ""

    def _check_ways(self, path: str, script: Script) -> None:
        for name, node in script.nodes.items():
            at = f"{path}.nodes.{name}"
            if node.then is not None and node.then not in script.nodes:
                self._wrong(f"{at}.next", f"names no node: {node.then[:64]}")
            for outcome, target in node.on.items():
                if target not in script.nodes:
                    self._wrong(f"{at}.on.{outcome}", f"names no node: {target[:64]}")
        reached = _reached(script.nodes, [script.start], lambda _: True)
        for name in script.nodes:
            if name not in reached:
                self._wrong(f"{path}.nodes.{name}", "is never reached; lead to it, or leave it out")
        for name, node in script.nodes.items():
            if node.listening is None and name in _reached(
                script.nodes, node.leads_to(), lambda item: item.listening is None
            ):
                self._wrong(f"{path}.nodes.{name}", "goes round without listening; put a gather on the way")

    def _object(self, path: str, given: object, known: Iterable[str]) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            self._wrong(path, "must be an object")
            return {}
        for name in given:
            if name not in known:
                self._wrong(f"{path}.{str(name)[:64]}", "is not a field")
        return given

    def _number(self, path: str, given: object, default: float, low: float, high: float) -> float:
        if given is None:
            return default
        whole = isinstance(default, int)
        number = isinstance(given, int if whole else int | float) and not isinstance(given, bool)
        if not number or not isinstance(given, int | float) or not low <= given <= high:
            self._wrong(path, f"must be {'a whole number from ' if whole else ''}{low:g} to {high:g}")
            return default
        return given

    def _text(self, path: str, given: object) -> str | None:
        if given is None:
            return None
        if not isinstance(given, str) or len(given) > MAX_TEXT_CHARS:
            self._wrong(path, f"must be a text of at most {MAX_TEXT_CHARS} characters")
            return None
        self.errors += text_errors(path, given)
        return given

    def _wrong(self, path: str, message: str) -> None:
        self.errors.append(FieldError(path, message))


def _reached(nodes: Mapping[str, Node], begin: Iterable[str], passes: Callable[[Node], bool]) -> set[str]:
    """The nodes that can be reached by continuing only from nodes for which ``passes`` is true."""
    reached: set[str] = set()
    ahead = [name for name in begin if name in nodes]
    while ahead:
        name = ahead.pop()
        if name in reached:
            continue
        reached.add(name)
        if passes(nodes[name]):
            ahead += [item for item in nodes[name].leads_to() if item in nodes]
    return reached
