"""
Verbs: the instructions that a customer may write for a call, and the steps of a plan that they mean.

One reader serves requests to place a call and the answers of a customer's server. Every wrong value is named
by its path (``verbs[0].url``). One table defines the verbs, so that another dialect (such as XML) only needs
a translation into these objects.
"""

from callcontrol.instructions.verbs.dialling import header_errors
from callcontrol.instructions.verbs.reader import (
    MAX_MESSAGE_CHARS,
    MAX_VERBS,
    NO_REJECT,
    REJECT_STATUSES,
    VERBS,
    VerbTable,
    digit_steps,
    read_verbs,
    unreachable_errors,
    verb_errors,
)
from callcontrol.instructions.verbs.values import VerbRules, VerbValues, WebhookDefaults

__all__ = [
    "MAX_MESSAGE_CHARS",
    "MAX_VERBS",
    "NO_REJECT",
    "REJECT_STATUSES",
    "VERBS",
    "VerbRules",
    "VerbTable",
    "VerbValues",
    "WebhookDefaults",
    "digit_steps",
    "header_errors",
    "read_verbs",
    "unreachable_errors",
    "verb_errors",
]
