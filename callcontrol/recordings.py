"""What the recording of a call is called, on disk and in the API."""


def recording_file(call_sid: str) -> str:
    """The name of the file that a call is recorded into."""
    return f"{call_sid}.wav"


def recording_url(call_sid: str) -> str:
    """Where the API serves the recording of a call."""
    return f"/recordings/{recording_file(call_sid)}"
