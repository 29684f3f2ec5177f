# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from . import shared


class Answer(TypedDict):
    """
    Answer the caller; an outbound call is answered already.
    """

    verb: Literal['answer']


class CallTarget(TypedDict):
    """
    A party to dial, in the syntax of jambonz.
    """

    type: NotRequired[Literal['phone', 'sip']]
    number: NotRequired[str | None]
    sip_uri: NotRequired[str | None]


class Conference(TypedDict):
    """
    Add the party to a conference of the account.
    """

    name: str
    muted: NotRequired[bool]
    start_on_enter: NotRequired[bool]
    end_on_exit: NotRequired[bool]
    beep: NotRequired[bool]
    max_participants: NotRequired[int]
    verb: Literal['conference']
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]


class ConferenceTarget(TypedDict):
    """
    A conference to join.
    """

    name: str
    muted: NotRequired[bool]
    start_on_enter: NotRequired[bool]
    end_on_exit: NotRequired[bool]
    beep: NotRequired[bool]
    max_participants: NotRequired[int]
    type: Literal['conference']


class Dial(TypedDict):
    """
    Call a second party and bridge the two, or join a conference.
    """

    verb: Literal['dial']
    target: list[CallTarget | ConferenceTarget]
    caller_id: NotRequired[str | None]
    timeout: NotRequired[int | None]
    time_limit: NotRequired[int | None]
    headers: NotRequired[dict[str, str] | None]
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]


class Dub(TypedDict):
    """
    Change a track that the party hears beside everything else, and go on with the next verb.
    """

    action: Literal['add', 'play', 'say', 'silence', 'remove']
    track: str
    url: NotRequired[str | None]
    text: NotRequired[str | None]
    language: NotRequired[str | None]
    voice: NotRequired[str | None]
    loop: NotRequired[bool | None]
    gain: NotRequired[float | None]
    verb: Literal['dub']


class Hangup(TypedDict):
    """
    End the call.
    """

    verb: Literal['hangup']


class LiveDigits(TypedDict):
    """
    Digits to send to a party.
    """

    digits: str
    party: NotRequired[Literal['a', 'b']]


class LiveDub(TypedDict):
    """
    Change of a track: a sound that a party hears beside everything else.
    """

    action: Literal['add', 'play', 'say', 'silence', 'remove']
    track: str
    url: NotRequired[str | None]
    text: NotRequired[str | None]
    language: NotRequired[str | None]
    voice: NotRequired[str | None]
    loop: NotRequired[bool | None]
    gain: NotRequired[float | None]
    party: NotRequired[Literal['a', 'b']]


class LiveRecording(TypedDict):
    """
    Action on the recording of a call; a call has one recording, which may be paused and resumed.
    """

    action: Literal['start', 'stop', 'pause', 'resume']
    channels: NotRequired[Literal['mono', 'dual']]


class LiveTranscription(TypedDict):
    """
    Begin or end the transcription of the call.
    """

    action: Literal['start', 'stop']
    language: NotRequired[str | None]


class LiveTransfer(TypedDict):
    """
    Transfer of a party to a new one; the party it was connected to leaves when the new one answers.
    """

    to: str | CallTarget
    party: NotRequired[Literal['a', 'b']]
    caller_id: NotRequired[str | None]
    timeout: NotRequired[int]
    headers: NotRequired[dict[str, str]]


Message = TypedDict(
    'Message',
    {
        'verb': Literal['message'],
        'to': str,
        'from': NotRequired[str | None],
        'text': str,
        'action_url': NotRequired[str | None],
        'action_method': NotRequired[Literal['POST', 'GET'] | None],
    },
)


class Model(TypedDict):
    """
    Connect the call to a vendor's realtime speech model.
    """

    provider: Literal['openai', 'deepgram', 'gemini', 'elevenlabs', 'ultravox']
    model: str
    instructions: NotRequired[str | None]
    voice: NotRequired[str | None]
    greeting: NotRequired[str | None]
    language: NotRequired[str | None]
    tools: NotRequired[list[str] | None]
    api_key: NotRequired[str | None]
    key: NotRequired[str | None]
    transcription: NotRequired[str | None]
    url: NotRequired[str | None]
    max_retries: NotRequired[int]
    verb: Literal['model']
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]


class Pause(TypedDict):
    """
    Wait.
    """

    verb: Literal['pause']
    length: NotRequired[float]


class Play(TypedDict):
    """
    Play a recorded sound: `prompt:NAME`, or an http(s) address of a WAV file.
    """

    url: str
    loop: NotRequired[int]
    verb: Literal['play']


class PlayedPrompt(TypedDict):
    """
    Sound to play while digits are collected.
    """

    url: str
    loop: NotRequired[int]


class Record(TypedDict):
    """
    Record the party's speech as a voicemail.
    """

    verb: Literal['record']
    max_length: NotRequired[float]
    silence_timeout: NotRequired[float]
    finish_on_key: NotRequired[str]
    beep: NotRequired[bool]
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]


class Redirect(TypedDict):
    """
    Request new verbs from your server; they replace the remaining ones.
    """

    verb: Literal['redirect']
    url: str
    method: NotRequired[Literal['POST', 'GET']]


class Say(TypedDict):
    """
    Speak a text.
    """

    text: str
    language: NotRequired[str]
    loop: NotRequired[int]
    voice: NotRequired[str | None]
    verb: Literal['say']


class SendDigits(TypedDict):
    """
    Send DTMF.
    """

    verb: Literal['send_digits']
    digits: str


class SpokenPrompt(TypedDict):
    """
    Text to speak while digits are collected.
    """

    text: str
    language: NotRequired[str]
    loop: NotRequired[int]
    voice: NotRequired[str | None]


class Transcribe(TypedDict):
    """
    Begin or end the transcription of the call, and go on with the next verb.
    """

    verb: Literal['transcribe']
    action: NotRequired[Literal['start', 'stop']]
    language: NotRequired[str | None]


class ListCallsFields(TypedDict):
    """
    Fields of `calls.list`.
    """

    status: NotRequired[Literal['queued', 'initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled'] | None]
    direction: NotRequired[Literal['inbound', 'outbound'] | None]
    from_: NotRequired[str | None]
    to: NotRequired[str | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    per_page: NotRequired[int]


class UpdateLiveCallFields(TypedDict):
    """
    Fields of `calls.update`.
    """

    call_status: NotRequired[Literal['completed', 'no-answer'] | None]
    mute_status: NotRequired[Literal['mute', 'unmute'] | None]
    mute_direction: NotRequired[Literal['says', 'hears', 'both'] | None]
    party: NotRequired[Literal['a', 'b'] | None]
    listen_status: NotRequired[Literal['pause', 'silence', 'resume'] | None]
    record: NotRequired[LiveRecording | None]
    transcribe: NotRequired[LiveTranscription | None]
    dub: NotRequired[LiveDub | None]
    dtmf: NotRequired[LiveDigits | None]
    transfer: NotRequired[LiveTransfer | None]
    time_limit: NotRequired[int | None]
    webhook_url: NotRequired[str | None]
    webhook_method: NotRequired[Literal['POST', 'GET'] | None]


class ListenToCallFields(TypedDict):
    """
    Fields of `calls.listen_to`.
    """

    sdp: str


class Gather(TypedDict):
    """
    Collect the party's DTMF digits, or what it says, while prompts are played.
    """

    verb: Literal['gather']
    prompts: NotRequired[list[Say | Play | Pause] | None]
    say: NotRequired[SpokenPrompt | None]
    play: NotRequired[PlayedPrompt | None]
    num_digits: NotRequired[int]
    finish_on_key: NotRequired[str]
    timeout: NotRequired[float]
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]
    action_on_empty: NotRequired[bool | None]
    input: NotRequired[list[Literal['digits', 'speech']] | None]
    language: NotRequired[str | None]


class Stream(TypedDict):
    """
    Connect the call to a voice agent over WebSocket.
    """

    sample_rate: NotRequired[int | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    stream_track: NotRequired[str | None]
    stream_max_retries: NotRequired[int | None]
    verb: Literal['stream']
    url: str
    action_url: NotRequired[str | None]
    action_method: NotRequired[Literal['POST', 'GET'] | None]


class CreateCallFields(TypedDict):
    """
    Fields of `calls.create`.
    """

    sample_rate: NotRequired[int | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    stream_track: NotRequired[str | None]
    stream_max_retries: NotRequired[int | None]
    from_: str
    to: str | CallTarget
    fallback_url: NotRequired[str | None]
    status_webhook_url: NotRequired[str | None]
    status_webhook_events: NotRequired[list[Literal['initiated', 'ringing', 'early-media', 'answered', 'completed']]]
    timeout: NotRequired[int]
    time_limit: NotRequired[int]
    machine_detection: NotRequired[Literal['off', 'detect', 'hangup']]
    record: NotRequired[bool]
    recording_channels: NotRequired[Literal['mono', 'dual']]
    transcribe: NotRequired[bool]
    transcription_language: NotRequired[str | None]
    send_digits: NotRequired[str | None]
    caller_name: NotRequired[str | None]
    headers: NotRequired[dict[str, str]]
    tag: NotRequired[str | None]
    carrier_sid: NotRequired[str | None]
    app_sid: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    stream_url: NotRequired[str | None]
    webhook_url: NotRequired[str | None]
    webhook_method: NotRequired[Literal['POST', 'GET']]
    webhook_format: NotRequired[Literal['json', 'form', 'jambonz']]
    verbs: NotRequired[list[Answer | Play | Say | Pause | Gather | Record | Transcribe | Dub | Dial | Conference | Stream | Model | Message | SendDigits | Redirect | Hangup] | None]
    model: NotRequired[shared.ModelFields | None]
