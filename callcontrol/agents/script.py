"""
Scripts of the built-in voice agent, as data: sentences, expected input, and branches.

A script is a set of named nodes. Each may say something, and then does one thing: it listens, transfers the
call, continues with another node, or hangs up. ``callcontrol.agents.script_parser`` parses scripts of
customers; ``callcontrol.agents.steps.converse`` runs them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from callcontrol.models.scripts import DIGITS, FAILED, SPEECH, Listening, Node, Script

MAX_NODES: Final = 100
MAX_TEXT_CHARS: Final = 1000
MAX_VALUE_CHARS: Final = 512
MAX_TURNS: Final = 200

VARIABLE: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*(?:\|([^{}]*))?\}\}", re.ASCII)
"""``{{name}}``, or ``{{name|text used without a value}}``."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?।])\s+")


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables of a text; one without a value or a default is removed."""

    def value(match: re.Match[str]) -> str:
        given = variables.get(match.group(1))
        return given if given else (match.group(2) or "").strip()

    return " ".join(VARIABLE.sub(value, text).split())


def usable(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables in a form that can be spoken: one line, no control characters, limited length."""
    return {
        name: "".join(c if c.isprintable() else " " for c in value)[:MAX_VALUE_CHARS]
        for name, value in variables.items()
    }


def sentences(text: str) -> list[str]:
    """Split a text into pieces that are spoken one after another; pieces without a word are dropped."""
    pieces: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        while len(sentence) > MAX_TEXT_CHARS:
            cut = sentence.rfind(" ", 1, MAX_TEXT_CHARS)
            cut = MAX_TEXT_CHARS if cut < 0 else cut
            pieces.append(sentence[:cut])
            sentence = sentence[cut:]
        pieces.append(sentence)
    return [piece.strip() for piece in pieces if any(c.isalnum() for c in piece)]


@dataclass(frozen=True, slots=True)
class StockWords:
    """Default sentences of the agent in a language."""

    greeting: str
    again: str
    noted: str
    unreachable: str
    goodbye: str


_EN: Final = StockWords(
    "Hello, this is {{agent_name}}. How can I help you?",
    "I did not hear you. Please go on.",
    "Thank you, I have noted that. Is there anything else?",
    "I am sorry, nobody can take your call at the moment.",
    "Thank you for your call. Goodbye.",
)
STOCK_WORDS: Final[Mapping[str, StockWords]] = MappingProxyType(
    {
        "en": _EN,
        "hi": StockWords(
            "नमस्ते, मैं {{agent_name}} बोल रही हूँ। मैं आपकी क्या सहायता कर सकती हूँ?",
            "मैं सुन नहीं पाई। कृपया बोलिए।",
            "धन्यवाद, मैंने लिख लिया है। क्या और कुछ कहना है?",
            "क्षमा कीजिए, अभी कोई उपलब्ध नहीं है।",
            "फ़ोन करने के लिए धन्यवाद। नमस्ते।",
        ),
        "bn": StockWords(
            "নমস্কার, আমি {{agent_name}}। আমি কীভাবে সাহায্য করতে পারি?",
            "আমি শুনতে পাইনি। দয়া করে বলুন।",
            "ধন্যবাদ, আমি লিখে নিয়েছি। আর কিছু বলবেন?",
            "দুঃখিত, এখন কেউ উপলব্ধ নেই।",
            "ফোন করার জন্য ধন্যবাদ। নমস্কার।",
        ),
        "gu": StockWords(
            "નમસ્તે, હું {{agent_name}} બોલું છું. હું તમારી શું મદદ કરી શકું?",
            "મને સંભળાયું નહીં. કૃપા કરીને બોલો.",
            "આભાર, મેં નોંધી લીધું છે. બીજું કંઈ કહેવું છે?",
            "માફ કરશો, હમણાં કોઈ ઉપલબ્ધ નથી.",
            "ફોન કરવા બદલ આભાર. નમસ્તે.",
        ),
        "mr": StockWords(
            "नमस्कार, मी {{agent_name}} बोलत आहे. मी तुमची काय मदत करू शकते?",
            "मला ऐकू आले नाही. कृपया बोला.",
            "धन्यवाद, मी नोंद केली आहे. आणखी काही सांगायचे आहे का?",
            "माफ करा, सध्या कोणी उपलब्ध नाही.",
            "फोन केल्याबद्दल धन्यवाद. नमस्कार.",
        ),
        "ta": StockWords(
            "வணக்கம், நான் {{agent_name}}. நான் எப்படி உதவலாம்?",
            "எனக்குக் கேட்கவில்லை. தயவுசெய்து பேசுங்கள்.",
            "நன்றி, குறித்துக் கொண்டேன். வேறு ஏதாவது சொல்ல வேண்டுமா?",
            "மன்னிக்கவும், இப்போது யாரும் இல்லை.",
            "அழைத்ததற்கு நன்றி. வணக்கம்.",
        ),
        "te": StockWords(
            "నమస్కారం, నేను {{agent_name}}. నేను మీకు ఎలా సహాయం చేయగలను?",
            "నాకు వినిపించలేదు. దయచేసి చెప్పండి.",
            "ధన్యవాదాలు, నేను రాసుకున్నాను. ఇంకా ఏమైనా చెప్పాలా?",
            "క్షమించండి, ఇప్పుడు ఎవరూ అందుబాటులో లేరు.",
            "ఫోన్ చేసినందుకు ధన్యవాదాలు. నమస్కారం.",
        ),
    }
)
"""By language; other languages that can be spoken use the English words."""


def stock_words(language: str) -> StockWords:
    """The default sentences in a language such as ``hi-IN``."""
    return STOCK_WORDS.get(language.lower().partition("-")[0], _EN)


def stock_script(language: str) -> Script:
    """
    The script of an agent without one: it listens, thanks for what it hears, and ends politely.

    Its first node says nothing, as it follows the greeting of the agent or of the stock words.
    """
    words = stock_words(language)
    branches = {SPEECH: "noted", DIGITS: "noted", FAILED: "goodbye"}
    return Script(
        {
            "start": Node("", Listening(timeout_s=6.0, retry_say=words.again), on=branches),
            "noted": Node(words.noted, Listening(retries=0), on=branches),
            "goodbye": Node(words.goodbye),
        },
        "start",
        max_turns=12,
    )
