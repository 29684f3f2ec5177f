"""Numbers, digits and amounts as prompts, in every language that has them."""

import tomllib
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.prompts import DIRECTORY
from media.audio import Clip, Pause, PromptLibrary, Speaker, UnknownPrompt
from media.audio.prompts import MAX_NUMBER, amount_words, digit_words, fallbacks, number_words
from tests.support.examples import examples

LIBRARY = PromptLibrary(DIRECTORY)
LANGUAGES = ["bn", "en", "gu", "hi", "kn", "ml", "mr", "pa", "ta", "te"]
KNOWN = {
    language: {name.partition("/")[2] for name in LIBRARY.names() if name.startswith(f"{language}/")}
    for language in LANGUAGES
}
SPEAKER = Speaker(LIBRARY)


def texts(language: str) -> dict[str, str]:
    """Return the texts of a language's prompts, by name."""
    told = tomllib.loads((DIRECTORY / "languages" / f"{language}.toml").read_text(encoding="utf-8"))
    said = {str(n): text.replace("_", " ") for n, text in enumerate(told["numbers"].split())}
    for table in ("tens", "hundreds", "words"):
        said |= told.get(table, {})
    return said


def spoken(language: str, number: int | Decimal) -> str:
    said = texts(language)
    return " ".join(said[word] for word in number_words(KNOWN[language], number))


def value(words: list[str]) -> int:
    """Return the number that a sequence of prompts speaks, computed independently of their choice."""
    scales = {"thousand": 1000, "lakh": 100_000, "crore": 10_000_000}
    total = current = 0
    for word in (word.removesuffix("-joined") for word in words if word != "and"):
        if word == "hundred":
            current *= 100
        elif word.removesuffix("-one") in scales:
            size = scales[word.removesuffix("-one")]
            total += (1 if word.endswith("-one") else current) * size
            current = 0
        else:
            current += int(word)
    return total + current


@pytest.mark.parametrize("language", LANGUAGES)
@given(number=st.integers(0, MAX_NUMBER))
@settings(max_examples=examples(150))
def test_every_number_is_spoken_with_prompts_that_exist(language: str, number: int) -> None:
    words = number_words(KNOWN[language], number)
    assert set(words) <= KNOWN[language]
    assert value(words) == number
    assert len(words) <= 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_small_and_the_round_numbers_are_all_there(language: str) -> None:
    rounds = [c * 10**e + r for e in (2, 3, 4, 5, 6, 7) for c in range(1, 10) for r in (0, 1, 10, 99)]
    for number in (*range(1200), *rounds, MAX_NUMBER):
        words = number_words(KNOWN[language], number)
        assert set(words) <= KNOWN[language]
        assert value(words) == number


@pytest.mark.parametrize("language", LANGUAGES)
@given(paise=st.integers(-MAX_NUMBER * 100 - 99, MAX_NUMBER * 100 + 99))
@settings(max_examples=examples(60))
def test_every_amount_is_spoken_with_prompts_that_exist(language: str, paise: int) -> None:
    words = amount_words(KNOWN[language], paise)
    assert set(words) <= KNOWN[language]
    assert ("minus" in words) == (paise < 0)
    assert any(word in words for word in ("rupee", "rupees")) == (abs(paise) >= 100 or paise == 0)
    assert any(word in words for word in ("paisa", "paise")) == (paise % 100 != 0)


@given(st.text("0123456789", min_size=1, max_size=64), st.integers(0, 4))
def test_digits_are_spoken_one_by_one_in_their_groups(text: str, group: int) -> None:
    words = digit_words(text, group)
    assert "".join(word for word in words if word.strip()) == text
    groups = "".join(word if word else "" for word in words).split(" ")
    assert all(len(part) == group for part in groups[:-1]) or not group
    assert len(words) == 2 * len(text) - 1


@pytest.mark.parametrize(
    ("language", "number", "expected"),
    [
        ("en", 0, "zero"),
        ("en", 21, "twenty one"),
        ("en", 105, "one hundred and five"),
        ("en", 1_00_005, "one lakh and five"),
        (
            "en",
            12_34_56_789,
            "twelve crore thirty four lakh fifty six thousand seven hundred and eighty nine",
        ),
        ("hi", 99, "निन्यानवे"),
        ("hi", 12_34_56_789, "बारह करोड़ चौंतीस लाख छप्पन हज़ार सात सौ नवासी"),
        ("mr", 100, "शंभर"),
        ("mr", 145, "एकशे पंचेचाळीस"),
        ("mr", 2345, "दोन हजार तीनशे पंचेचाळीस"),
        ("gu", 250, "બસો પચાસ"),
        ("bn", 1_500, "এক হাজার পাঁচশো"),
        ("pa", 5_00_000, "ਪੰਜ ਲੱਖ"),
        ("ta", 1_000, "ஆயிரம்"),
        ("ta", 1_125, "ஆயிரத்து நூற்று இருபத்தைந்து"),
        ("ta", 900, "தொள்ளாயிரம்"),
        ("te", 2_000, "రెండు వేలు"),
        ("te", 2_105, "రెండు వేల నూట ఐదు"),
        ("te", 300, "మూడు వందలు"),
        ("kn", 2_350, "ಎರಡು ಸಾವಿರದ ಮುನ್ನೂರ ಐವತ್ತು"),
        ("ml", 1_00_001, "ഒരു ലക്ഷത്തി ഒന്ന്"),
        ("ml", 520, "അഞ്ഞൂറ്റി ഇരുപത്"),
        ("en", Decimal("-2.50"), "minus two point five"),
        ("hi", Decimal("3.07"), "तीन दशमलव शून्य सात"),
    ],
)
def test_known_numbers_are_said_as_they_are(language: str, number: int | Decimal, expected: str) -> None:
    assert spoken(language, number) == expected


@pytest.mark.parametrize(
    ("language", "paise", "expected"),
    [
        ("en", 0, "zero rupees"),
        ("en", 100, "one rupee"),
        ("en", 1_01, "one rupee and one paisa"),
        ("en", 12_50, "twelve rupees and fifty paise"),
        ("en", 75, "seventy five paise"),
        ("en", -5_00, "minus five rupees"),
        ("hi", 12_50, "बारह रुपये पचास पैसे"),
        ("hi", 1_00, "एक रुपया"),
        ("ta", 1_00, "ஒரு ரூபாய்"),
    ],
)
def test_known_amounts_are_said_as_they_should_be(language: str, paise: int, expected: str) -> None:
    said = texts(language)
    assert " ".join(said[word] for word in amount_words(KNOWN[language], paise)) == expected


SCRIPTS = {
    **{"en": "LATIN", "hi": "DEVANAGARI", "mr": "DEVANAGARI", "bn": "BENGALI", "gu": "GUJARATI"},
    **{"pa": "GURMUKHI", "ta": "TAMIL", "te": "TELUGU", "kn": "KANNADA", "ml": "MALAYALAM"},
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_number_has_a_word_of_its_own_in_the_language_s_script(language: str) -> None:
    said = texts(language)
    small = [said[str(n)] for n in range(100) if str(n) in said]
    assert len(small) == (28 if language == "en" else 100)
    assert len(set(small)) == len(small)
    for text in said.values():
        for character in text:
            assert character == " " or unicodedata.name(character).startswith(
                (SCRIPTS[language], "ZERO WIDTH")
            ), text


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (MAX_NUMBER + 1, "up to"),
        (-MAX_NUMBER - 1, "up to"),
        (Decimal("1e999999"), "up to"),
        (Decimal("NaN"), "up to"),
        (Decimal("-Infinity"), "up to"),
        (Decimal("0.1234567"), "six|6"),
    ],
)
def test_other_numbers_are_refused(number: int | Decimal, reason: str) -> None:
    with pytest.raises(UnknownPrompt, match=reason):
        number_words(KNOWN["en"], number)


@pytest.mark.parametrize("text", ["", "1a", "-1", "१", "1 2", "1" * 65])
def test_other_digits_are_refused(text: str) -> None:
    with pytest.raises(UnknownPrompt, match="digits"):
        SPEAKER.digits("en", text)


@pytest.mark.parametrize(
    ("language", "folders"),
    [
        ("hi-IN", ["hi-in", "hi", "en-in", "en"]),
        ("en-IN", ["en-in", "en"]),
        ("EN", ["en", "en-in"]),
        ("fr", ["fr", "en-in", "en"]),
        ("../x", ["../x", "en-in", "en"]),
    ],
)
def test_languages_fall_back(language: str, folders: list[str]) -> None:
    assert fallbacks(language) == folders


def test_what_a_language_lacks_is_spoken_whole_in_another() -> None:
    assert SPEAKER.languages == LANGUAGES
    assert SPEAKER.digits("hi-IN", "45") == SPEAKER.digits("hi", "45")
    assert SPEAKER.digits("fr-FR", "45") == SPEAKER.digits("en", "45") != SPEAKER.digits("hi", "45")
    assert SPEAKER.number("../../etc", 45) == SPEAKER.number("en", 45)
    assert SPEAKER.prompt("ta-IN", "welcome") == SPEAKER.prompt("en", "welcome")
    assert SPEAKER.prompt("hi-IN", "welcome") != SPEAKER.prompt("en", "welcome")
    with pytest.raises(UnknownPrompt, match="no prompt named farewell"):
        SPEAKER.prompt("hi", "farewell")


def test_what_is_spoken_are_clips_and_pauses() -> None:
    sounds = SPEAKER.digits("ta-IN", "4821", group=2)
    assert [sound.duration_ms for sound in sounds if isinstance(sound, Pause)] == [150, 450, 150]
    clips = [sound for sound in sounds if isinstance(sound, Clip)]
    assert [clip.pcm for clip in clips] == [LIBRARY.get(f"ta/{digit}") for digit in "4821"]
    amount = SPEAKER.amount("mr", 12_34_567_89)
    assert all(isinstance(sound, Clip) for sound in amount)
    assert 4000 < sum(sound.duration_ms for sound in amount) < 12_000


def test_a_library_without_prompts_speaks_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = Speaker(PromptLibrary(tmp_path_factory.mktemp("none")))
    assert empty.languages == []
    with pytest.raises(UnknownPrompt, match="no prompts that speak this in hi"):
        empty.number("hi", 1)
