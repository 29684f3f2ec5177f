"""
Translation of jambonz's ``llm`` verb and its synonyms: which field of ours each of a vendor's options is.

The options are the vendor's own session messages, so each vendor has a table of their places. A place in no
table is refused by name: the session would be another one than the application describes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from callcontrol.instructions.jambonz.tables import MODEL_VERBS

Place = tuple[str, Callable[[Any], object]]
"""Our field, empty for a place without an effect, and the function that reads its value."""

ReportFault = Callable[[str, str], None]
"""Reports the fault of a place."""

_PROVIDERS: Final = {
    "openai": "openai",
    "google": "gemini",
    "deepgram": "deepgram",
    "elevenlabs": "elevenlabs",
    "ultravox": "ultravox",
}
"""Our provider by jambonz's vendor."""

_OPEN_AI: Final = "open_ai"


def _as_is(value: Any) -> object:
    return value


def _system_text(value: Any) -> object:
    """The instructions in a history of messages, which may have nothing but them."""
    match value:
        case [{"role": "system" | "developer", "content": str(text)}]:
            return text
    raise ValueError("must be a list of one message {role: system, content}: there is no history")


def _parts_text(value: Any) -> object:
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list of {text}")
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of {text}")
    return "\n".join(map(str, texts))


def _tool_names(value: Any) -> object:
    """
    The names of tools; what a tool does and is told of is known here, not in the application.

    So a description or parameters of the application's own would have no effect.
    """
    if not isinstance(value, list):
        raise ValueError("must be a list of tools")
    if not all(_is_tool_name(tool) for tool in value):
        raise ValueError("must be a list of {name}: tools of the call, or registered ones of the account")
    return [tool.get("name") for tool in value]


def _is_tool_name(tool: object) -> bool:
    if not isinstance(tool, Mapping) or not tool.keys() <= {"type", "name"}:
        return False
    return tool.get("type") in (None, "function")


def _google_tools(value: Any) -> object:
    match value:
        case [{"functionDeclarations": declared}] if len(value[0]) == 1:
            return _tool_names(declared)
    raise ValueError("must be a list of one {functionDeclarations}")


def _deepgram_speaker(value: Any) -> object:
    if value != "deepgram":
        raise ValueError("must be deepgram")
    return None


def _ultravox_tools(value: Any) -> object:
    if not isinstance(value, list):
        raise ValueError("must be a list of tools")
    names: list[object] = []
    for tool in value:
        match tool:
            case {"temporaryTool": {"modelToolName": name, "client": client, **more}, **others} if (
                client == {} and not (more or others)
            ):
                names.append(name)
            case _:
                raise ValueError(
                    "must be a list of {temporaryTool: {modelToolName, client: {}}}: tools of the call, or"
                    " registered ones of the account"
                )
    return names


def _ultravox_speaker(value: Any) -> object:
    if value != "FIRST_SPEAKER_USER":
        raise ValueError(
            "must be FIRST_SPEAKER_USER; words to begin with are firstSpeakerSettings.agent.text"
        )
    return None


_ANY: Final[Place] = ("", _as_is)
_TRANSCRIBED: Final = "llmOptions.session_update.input_audio_transcription"
_INPUT: Final = "llmOptions.session_update.audio.input"
_SETUP: Final = "llmOptions.setup"
_SPEECH: Final = f"{_SETUP}.generationConfig.speechConfig"
_AGENT: Final = "llmOptions.Settings.agent"
_CLIENT_DATA: Final = "llmOptions.conversation_initiation_client_data"
_OVERRIDE: Final = f"{_CLIENT_DATA}.conversation_config_override"

_KEYS: Final[Mapping[str, Place]] = {"auth.apiKey": ("api_key", _as_is), "auth.key": ("key", _as_is)}
_USUAL: Final[Mapping[str, Place]] = {
    "model": ("model", _as_is),
    **_KEYS,
    "llmOptions.messages": ("instructions", _system_text),
}
PLACES: Final[Mapping[str, Mapping[str, Place]]] = {
    "openai": {
        **_USUAL,
        "llmOptions.session_update.instructions": ("instructions", _as_is),
        "llmOptions.session_update.voice": ("voice", _as_is),
        "llmOptions.session_update.audio.output.voice": ("voice", _as_is),
        "llmOptions.session_update.tools": ("tools", _tool_names),
        f"{_TRANSCRIBED}.model": ("transcription", _as_is),
        f"{_TRANSCRIBED}.language": ("language", _as_is),
        f"{_INPUT}.transcription.model": ("transcription", _as_is),
        f"{_INPUT}.transcription.language": ("language", _as_is),
        # The formats of the audio, and when the vendor finds that a turn has ended.
        **dict.fromkeys((f"{_INPUT}.format", f"{_INPUT}.turn_detection"), _ANY),
        **{
            f"llmOptions.session_update.{name}": _ANY
            for name in ("type", "modalities", "output_modalities", "input_audio_format")
            + ("output_audio_format", "turn_detection", "audio.output.format", "tool_choice")
        },
    },
    "google": {
        **_USUAL,
        f"{_SETUP}.systemInstruction.parts": ("instructions", _parts_text),
        f"{_SETUP}.systemInstruction.role": _ANY,
        f"{_SPEECH}.voiceConfig.prebuiltVoiceConfig.voiceName": ("voice", _as_is),
        f"{_SPEECH}.languageCode": ("language", _as_is),
        f"{_SETUP}.tools": ("tools", _google_tools),
        f"{_SETUP}.generationConfig.responseModalities": _ANY,
        f"{_SETUP}.inputAudioTranscription": _ANY,
        f"{_SETUP}.outputAudioTranscription": _ANY,
    },
    "deepgram": {
        **_KEYS,
        f"{_AGENT}.think.provider.model": ("model", _as_is),
        f"{_AGENT}.think.provider.type": ("vendor", _as_is),
        f"{_AGENT}.think.prompt": ("instructions", _as_is),
        f"{_AGENT}.think.functions": ("tools", _tool_names),
        f"{_AGENT}.speak.provider.type": ("", _deepgram_speaker),
        f"{_AGENT}.speak.provider.model": ("voice", _as_is),
        f"{_AGENT}.listen.provider.type": ("", _deepgram_speaker),
        f"{_AGENT}.listen.provider.model": ("transcription", _as_is),
        f"{_AGENT}.greeting": ("greeting", _as_is),
        f"{_AGENT}.language": ("language", _as_is),
        "model": _ANY,
        "llmOptions.Settings.type": _ANY,
    },
    "elevenlabs": {
        "auth.agent_id": ("model", _as_is),
        "auth.api_key": ("api_key", _as_is),
        "auth.key": ("key", _as_is),
        f"{_OVERRIDE}.agent.prompt.prompt": ("instructions", _as_is),
        f"{_OVERRIDE}.agent.first_message": ("greeting", _as_is),
        f"{_OVERRIDE}.agent.language": ("language", _as_is),
        f"{_OVERRIDE}.tts.voice_id": ("voice", _as_is),
        f"{_CLIENT_DATA}.type": _ANY,
        "model": _ANY,
        **dict.fromkeys(("llmOptions.input_sample_rate", "llmOptions.output_sample_rate"), _ANY),
    },
    "ultravox": {
        "model": ("model", _as_is),
        **_KEYS,
        "llmOptions.systemPrompt": ("instructions", _as_is),
        "llmOptions.voice": ("voice", _as_is),
        "llmOptions.languageHint": ("language", _as_is),
        "llmOptions.firstSpeakerSettings.agent.text": ("greeting", _as_is),
        "llmOptions.firstSpeaker": ("", _ultravox_speaker),
        "llmOptions.selectedTools": ("tools", _ultravox_tools),
        # The verb's own model is the one that counts, and there are transcripts.
        **dict.fromkeys(("llmOptions.model", "llmOptions.transcriptOptional"), _ANY),
    },
}
"""By jambonz's vendor, the places that are read."""


def read_llm(
    verb: str, given: Mapping[str, Any], wrong: ReportFault
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """
    Translate the fields of a verb of ``MODEL_VERBS``, without its hooks, into those of our ``model``.

    Returns the fields, and the place of each; None when there is no such vendor.
    """
    fixed, given = MODEL_VERBS[verb], dict(given)
    vendor = given.pop("vendor", None) or fixed
    if not isinstance(vendor, str) or vendor not in _PROVIDERS or fixed not in (None, vendor):
        known = fixed or " or ".join(_PROVIDERS)
        named = f"{vendor[:50]} is not available; it " if isinstance(vendor, str) else ""
        wrong("vendor", f"{named}must be {known}")
        return None
    places = PLACES[vendor]
    found: dict[str, Any] = {"provider": _PROVIDERS[vendor]}
    names = {field: place for place, (field, _) in reversed(list(places.items())) if field}
    seen: dict[str, str] = {}
    for place, value in _leaves(given, places):
        if place not in places:
            wrong(place, f"is not available in {verb} of {vendor}")
            continue
        field, read = places[place]
        try:
            read_value = read(value)
        except ValueError as error:
            wrong(place, str(error))
            continue
        if field in seen:
            wrong(place, f"cannot be combined with {seen[field]}")
        elif field:
            seen[field] = names[field] = place
            found[field] = read_value
    # Deepgram's models are those of other vendors, named with them.
    thinker = found.pop("vendor", _OPEN_AI)
    if thinker != _OPEN_AI and isinstance(found.get("model"), str):
        found["model"] = f"{thinker}/{found['model']}"
    return found, names


def _leaves(given: Mapping[str, Any], places: Mapping[str, Place]) -> Iterator[tuple[str, Any]]:
    """Yield the places and values of an object, as deep as ``places`` go; null counts as absent."""
    inner = {place[: at + 1] for place in places for at in range(len(place)) if place[at] == "."}
    waiting = [("", given)]
    while waiting:
        path, item = waiting.pop()
        for name, value in item.items():
            place = f"{path}{str(name)[:100]}"
            if f"{place}." in inner and isinstance(value, Mapping):
                waiting.append((f"{place}.", value))
            elif value is not None:
                yield place, value
