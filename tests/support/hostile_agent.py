"""
An agent that means harm, as a process of its own: what it wastes is its own time.

`python -m tests.support.hostile_agent KIND [VENDOR]` prints the port it listens on and does one kind of harm
to every connection, until its standard input ends. It writes a line for each thing that a test may wait for.
With a vendor it accepts the session of a speech model first. It speaks TLS with HOSTILE_TLS in its
environment.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from tests.support.tls_server import in_front_of

TEXT, BINARY, CONTINUATION, PING, PONG = 1, 2, 0, 9, 10
_MIB = 1 << 20

# By vendor: what accepts a session, the beginning of audio (None where it is binary), and a transcript.
MODELS: dict[str, tuple[bytes, bytes | None, bytes]] = {
    "openai": (
        b'{"type":"session.updated"}',
        b"input_audio_buffer.append",
        b'{"type":"conversation.item.input_audio_transcription.completed","transcript":"x"}',
    ),
    "deepgram": (
        b'{"type":"SettingsApplied"}',
        None,
        b'{"type":"ConversationText","role":"user","content":"x"}',
    ),
    "gemini": (
        b'{"setupComplete":{}}',
        b"realtimeInput",
        b'{"serverContent":{"inputTranscription":{"text":"x"},"turnComplete":true}}',
    ),
    "elevenlabs": (
        b'{"type":"conversation_initiation_metadata","conversation_initiation_metadata_event":{}}',
        b"user_audio_chunk",
        b'{"type":"user_transcript","user_transcription_event":{"user_transcript":"x"}}',
    ),
    "ultravox": (
        b'{"type":"call_started"}',
        None,
        b'{"type":"transcript","role":"user","medium":"voice","text":"x","final":true,"ordinal":1}',
    ),
}
# Vendors of whom a request by HTTP creates a session.
BY_REQUEST = ("elevenlabs", "ultravox")
VENDOR = sys.argv[2] if len(sys.argv) > 2 else None
_AUDIO_FRAME_BYTES = 640 if VENDOR == "ultravox" else 160


class Victim:
    """The socket of a stream, from the agent's side."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.key = b""

    def request(self) -> None:
        """Read the upgrade request."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.sock.recv(4096)
            if not more:
                raise ConnectionError
            data += more
        self.key = data.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]

    @property
    def answer(self) -> bytes:
        """The answer that completes the handshake."""
        accept = base64.b64encode(hashlib.sha1(self.key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        return (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )

    def open(self) -> None:
        """Complete the handshake and wait until the call is up."""
        self.request()
        self.sock.sendall(self.answer)
        if VENDOR is None:
            self.until(b'"event":"media"', or_binary=True)
            return
        accepts, audio, _ = MODELS[VENDOR]
        self.send(TEXT, accepts)
        if audio is not None:
            self.until(audio)
        else:
            while len(self._frame()[1]) != _AUDIO_FRAME_BYTES:
                pass

    def send(self, opcode: int, payload: bytes, *, fin: bool = True, length: int | None = None) -> None:
        """Send a frame; ``length`` is what its head says, if not the truth."""
        size = len(payload) if length is None else length
        head = bytes([fin << 7 | opcode])
        if size < 126:
            head += bytes([size])
        elif size < 1 << 16:
            head += b"\x7e" + struct.pack(">H", size)
        else:
            head += b"\x7f" + struct.pack(">Q", size)
        self.sock.sendall(head + payload)

    def say(self, **message: object) -> None:
        """Send a message of the protocol."""
        self.send(TEXT, json.dumps(message).encode())

    def drop(self) -> None:
        """Read whatever comes, and answer nothing, until the connection ends."""
        while self.sock.recv(65536):
            pass

    def until(self, text: bytes, *, or_binary: bool = False) -> None:
        """Read frames until one holds a text, or is binary; pings are not answered."""
        while text not in (read := self._frame())[1] and not (or_binary and read[0] == BINARY):
            pass

    def _frame(self) -> tuple[int, bytes]:
        head = self._exactly(2)
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._exactly(2))
        mask = self._exactly(4)
        data = self._exactly(size)
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return head[0] & 0x0F, (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data


def _audio(pcm: bytes) -> bytes:
    payload = base64.b64encode(pcm).decode()
    return json.dumps({"event": "media", "media": {"payload": payload}}).encode()


def garbage(victim: Victim) -> None:
    """Far more nonsense than is borne."""
    victim.open()
    for number in range(400):
        victim.send(TEXT, b"\xff\x00{[" + str(number).encode())
    victim.drop()


def some_garbage(victim: Victim) -> None:
    """Nonsense that is borne: not JSON, no object, binary frames, wrong types, half a number."""
    victim.open()
    for data in (b"", b"nonsense", b"[]", b'{"event":7}', b'{"event":"media","media":{"payload":1}}'):
        for _ in range(5):
            victim.send(TEXT, data)
            victim.send(BINARY, data)
    victim.say(event="mark", mark={"name": "still here"})
    victim.until(b"still here")
    print("borne", flush=True)
    victim.drop()


def huge_frame(victim: Victim) -> None:
    """One frame of 10 MiB."""
    victim.open()
    victim.send(TEXT, b"x" * (10 * _MIB))
    victim.drop()


def huge_message(victim: Victim) -> None:
    """A message of 10 MiB in fragments."""
    victim.open()
    victim.send(TEXT, b"x" * 65536, fin=False)
    for _ in range(160):
        victim.send(CONTINUATION, b"x" * 65536, fin=False)
    victim.drop()


def flood(victim: Victim) -> None:
    """Forty minutes of audio as fast as it goes, then a clear, which must still come through."""
    victim.open()
    second = _audio(bytes(16_000))
    threading.Thread(target=_ignore, args=(victim,), daemon=True).start()
    for _ in range(2400):
        victim.send(TEXT, second)
    victim.say(event="mark", mark={"name": "after the flood"})
    victim.say(event="clear")
    victim.say(event="hangup", hangup={"drain": False})
    wait(60)


def binary_flood(victim: Victim) -> None:
    """Forty minutes of audio in messages of 64 KiB, then a clear, which must still come through."""
    victim.open()
    threading.Thread(target=_ignore, args=(victim,), daemon=True).start()
    for _ in range(300):
        victim.send(BINARY, bytes(65_500))
    victim.say(event="clear")
    victim.say(event="hangup", hangup={"drain": False})
    wait(60)


def commands(victim: Victim) -> None:
    """Commands without end."""
    victim.open()
    hold = b'{"event":"hold","hold":{"active":true}}' if VENDOR is None else MODELS[VENDOR][2]
    threading.Thread(target=_ignore, args=(victim,), daemon=True).start()
    while True:
        victim.send(TEXT, hold)


def half_frame(victim: Victim) -> None:
    """The beginning of a frame, and never its end."""
    victim.open()
    victim.send(TEXT, b'{"event":"media","media":{"payload":"AAAA', length=60_000)
    victim.drop()


def no_pong(victim: Victim) -> None:
    """It reads everything and answers no ping."""
    victim.open()
    victim.drop()


def never_reads(victim: Victim) -> None:
    """Its socket fills, while it asks for answers."""
    victim.open()
    for number in range(50):
        victim.say(event="mark", mark={"name": str(number)})
        wait(0.01)
    wait(60)


def pings(victim: Victim) -> None:
    """A thousand pings in a row, every one to be answered."""
    victim.open()
    for number in range(1000):
        victim.send(PING, struct.pack(">I", number))
    victim.say(event="mark", mark={"name": "pinged"})
    victim.until(b"pinged")
    print("borne", flush=True)
    victim.drop()


def tiny_frames(victim: Victim) -> None:
    """The smallest frames there are, as many as the socket takes."""
    victim.open()
    threading.Thread(target=_ignore, args=(victim,), daemon=True).start()
    flood = bytes([0x80 | PONG, 0]) * (32 * 1024)
    while True:
        victim.sock.sendall(flood)


def mute_server(victim: Victim) -> None:
    """It takes the connection and says nothing."""
    victim.drop()


def half_handshake(victim: Victim) -> None:
    """It hangs up in the middle of its answer."""
    victim.request()
    victim.sock.sendall(victim.answer[:40])


def wrong_handshake(victim: Victim) -> None:
    """It answers somebody else's request."""
    victim.request()
    victim.key = b"not yours"
    victim.sock.sendall(victim.answer)
    victim.drop()


def endless_handshake(victim: Victim) -> None:
    """Its answer has header fields without end."""
    victim.request()
    victim.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        victim.sock.sendall(b"X-Filler: " + b"x" * 1000 + b"\r\n")


def slow_handshake(victim: Victim) -> None:
    """One byte now and then."""
    victim.request()
    for byte in victim.answer:
        victim.sock.sendall(bytes([byte]))
        wait(0.2)


def _ignore(victim: Victim) -> None:
    with suppress(OSError):
        victim.drop()


KINDS: dict[str, Callable[[Victim], None]] = {
    kind.__name__: kind
    for kind in (
        garbage,
        some_garbage,
        huge_frame,
        huge_message,
        flood,
        binary_flood,
        commands,
        half_frame,
        no_pong,
        never_reads,
        pings,
        tiny_frames,
        mute_server,
        half_handshake,
        wrong_handshake,
        endless_handshake,
        slow_handshake,
    )
}


def wait(seconds: float) -> None:
    """Do nothing; the process ends in the midst of it when its test is over."""
    threading.Event().wait(seconds)


def _victims(server: socket.socket) -> Iterator[socket.socket]:
    while True:
        sock, _ = server.accept()
        yield sock


def _harm(kind: Callable[[socket.socket], None], sock: socket.socket) -> None:
    with sock, suppress(OSError):
        kind(sock)


def _leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def serve(kind: Callable[[socket.socket], None]) -> None:
    """Do harm to every connection until the standard input ends."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    server = socket.create_server(("127.0.0.1", 0))
    port: int = server.getsockname()[1]
    print(in_front_of(port) if "HOSTILE_TLS" in os.environ else port, flush=True)
    for sock in _victims(server):
        threading.Thread(target=_harm, args=(kind, sock), daemon=True).start()


def _behind_a_request(sock: socket.socket) -> None:
    """Return a session for a request, whose WebSocket does the harm."""
    head = sock.recv(65536, socket.MSG_PEEK)
    if not head.startswith(b"POST") and b"/get-signed-url" not in head:
        harm(Victim(sock))
        return
    host, port = sock.getsockname()
    url = b"ws://%s:%d/call" % (host.encode(), port)
    body = b'{"joinUrl":"%s","signed_url":"%s"}' % (url, url)
    sock.sendall(
        b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
    )
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(65536):
        pass


# What is done before there is a session.
_EARLY = (mute_server, half_handshake, endless_handshake, slow_handshake)


if __name__ == "__main__":
    harm = KINDS[sys.argv[1]]
    serve(
        _behind_a_request if VENDOR in BY_REQUEST and harm not in _EARLY else lambda sock: harm(Victim(sock))
    )
