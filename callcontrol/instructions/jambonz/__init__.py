"""
Verbs as jambonz has them: translates its JSON into objects of the verb reader, as TwiML is.

``tables`` says what each of its verbs and fields means here, ``verbs`` has the verbs that only this language
needs.
"""

from callcontrol.instructions.jambonz.translation import Translated, live_dub, read_jambonz
from callcontrol.instructions.jambonz.verbs import (
    JAMBONZ_VERBS,
    RECORDING_ACTIONS,
    continued,
    tag_problem,
)

__all__ = [
    "JAMBONZ_VERBS",
    "RECORDING_ACTIONS",
    "Translated",
    "continued",
    "live_dub",
    "read_jambonz",
    "tag_problem",
]
