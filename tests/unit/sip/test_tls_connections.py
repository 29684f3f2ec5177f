"""TLS over connections without sockets: handshakes, aliases, deadlines (RFC 5922, RFC 5923)."""

from pathlib import Path

import pytest

from sip.aio.tcp import StreamLimits
from sip.aio.tcp_connection import Connection
from sip.aio.tls import ClientCertificates, TlsContexts, TlsSettings
from sip.message.fields import Via
from tests.support.certificates import Authority
from tests.support.memory_stream import MemoryStream, News, Streams
from tests.unit.sip.message.test_framer import message


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


class Pair:
    """A client and a server, and the wire between them."""

    def __init__(
        self,
        authority: Authority,
        server_hosts: tuple[str, ...] = ("sbc.example.net",),
        clients: ClientCertificates = ClientCertificates.NONE,
        limits: StreamLimits | None = None,
    ) -> None:
        ours = authority.issue("pbx", hosts=["pbx.example.org"])
        theirs = authority.issue("sbc", hosts=server_hosts)
        self.client = Streams(limits, TlsContexts(TlsSettings(ours.certificate, ours.key, authority.file)))
        settings = TlsSettings(theirs.certificate, theirs.key, authority.file, clients=clients)
        self.server = Streams(limits, TlsContexts(settings))

    def join(self, name: str = "sbc.example.net") -> tuple[Connection, Connection]:
        """Connect, before the handshake."""
        near = self.client.connect(port=5061, name=name)
        far, self.far_stream = self.server.accept("192.0.2.1")
        self.near_stream = self.client.come_up(near)
        self.near_stream.other, self.far_stream.other = far, near
        return near, far

    def run(self) -> None:
        """Pass bytes on until nobody has anything to say."""
        while any([_deliver(self.near_stream), _deliver(self.far_stream)]):
            pass


def _deliver(stream: MemoryStream) -> bool:
    return stream.deliver()


def test_messages_cross_encrypted(authority: Authority) -> None:
    pair = Pair(authority)
    near, far = pair.join()
    near.send(message(b"early"))  # Before anybody has said hello.
    assert not near.established and not far.established
    pair.run()
    assert near.established and far.established
    far.send(message(b"back"))
    assert all(b"SIP" not in data for data in pair.far_stream.written)
    pair.run()
    assert [data for data, _ in pair.server.messages] == [message(b"early")]
    assert [data for data, _ in pair.client.messages] == [message(b"back")]
    assert near.peer_names == {"sbc.example.net"}
    assert far.peer_names == frozenset()
    near.shut()
    assert near.closed and not far.closed
    pair.run()
    assert far.closed, "it was told that nothing more comes"


def test_messages_in_any_pieces(authority: Authority) -> None:
    pair = Pair(authority)
    near, far = pair.join()
    near.send(message(b"x" * 50_000) + message(b"y"))
    while not pair.server.messages:
        for stream in (pair.near_stream, pair.far_stream):
            written, stream.written = b"".join(stream.written), []
            for at in range(0, len(written), 700):
                assert stream.other is not None
                stream.other.data_received(written[at : at + 700])
    assert [len(data) for data, _ in pair.server.messages] == [
        len(message(b"x" * 50_000)),
        len(message(b"y")),
    ]
    assert near.established and far.established


def test_nothing_is_sent_to_somebody_else(authority: Authority) -> None:
    pair = Pair(authority)
    near, news = pair.join("other.example.net")[0], News()
    near.watch(news)
    near.send(message())
    pair.run()
    assert near.closed and not near.established
    assert near.transport_error == "its certificate is for sbc.example.net, not for other.example.net"
    assert news.broken == 1
    assert pair.server.messages == []


def test_a_peer_without_the_certificate_that_is_required(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "Strange CA").issue("stranger")
    pair = Pair(authority, clients=ClientCertificates.REQUIRED)
    strange = TlsSettings(stranger.certificate, stranger.key, authority.file)
    pair.client = Streams(None, TlsContexts(strange))
    near, far = pair.join()
    near.send(message())
    pair.run()
    assert near.closed and far.closed
    assert near.transport_error is not None and "unknown ca" in near.transport_error
    assert far.transport_error is not None and "certificate is not accepted" in far.transport_error
    assert pair.server.messages == []


def test_a_handshake_that_never_ends(authority: Authority) -> None:
    pair = Pair(authority)
    near, far = pair.join()
    news = News()
    near.watch(news)
    pair.client.pass_time(3)
    assert near.closed and news.broken == 1
    assert near.transport_error == "The handshake took too long"
    far.data_received(b"\x16\x03\x01\x02")
    pair.server.pass_time(30)
    assert far.closed


def test_garbage_instead_of_a_handshake(authority: Authority) -> None:
    server = Pair(authority).server
    connection, stream = server.accept()
    connection.data_received(message())
    assert connection.closed and stream.closing
    assert server.messages == []


# RFC 5923.


def test_a_proved_peer_is_called_back_on_its_own_connection(authority: Authority) -> None:
    pair = Pair(authority, clients=ClientCertificates.OPTIONAL)
    _, far = pair.join()
    pair.run()
    assert far.peer_names == {"pbx.example.org"}
    far.note_via(Via.parse("SIP/2.0/TLS pbx.example.org:5071;branch=z9hG4bKx;alias"))
    transport = pair.server.transport
    assert transport.flow_to(("192.0.2.1", 5071), "PBX.example.org") is far
    assert transport.connection_count == 1
    far.connection_lost(None)
    assert transport._aliases == {}
    assert transport.connection_count == 0


@pytest.mark.parametrize(
    ("via", "clients"),
    [
        # Not asked for.
        ("SIP/2.0/TLS pbx.example.org:5071;branch=z9hG4bKx", ClientCertificates.OPTIONAL),
        # Not who it says it is.
        ("SIP/2.0/TLS bank.example.org:5071;branch=z9hG4bKx;alias", ClientCertificates.OPTIONAL),
        # Nothing is proved.
        ("SIP/2.0/TLS pbx.example.org:5071;branch=z9hG4bKx;alias", ClientCertificates.NONE),
    ],
)
def test_an_alias_must_be_wanted_and_proved(
    authority: Authority, via: str, clients: ClientCertificates
) -> None:
    pair = Pair(authority, clients=clients)
    near, far = pair.join()
    pair.run()
    far.note_via(Via.parse(via))
    near.note_via(Via.parse(via))
    assert pair.server.transport._aliases == {}
    assert pair.client.transport._aliases == {}
