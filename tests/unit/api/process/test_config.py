"""Settings: environment over file over default, with every problem named."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from api.process.config import (
    PREFIX,
    VARIABLES,
    ConfigError,
    Variable,
    for_development,
    load_settings,
    shown_settings,
)
from api.process.server import sip_listens, user_agent_settings
from api.process.values import HostPort, ListenAddress, PortRange
from sip.aio import ClientCertificates, TlsSettings


def problems(environ: dict[str, str], file: Path | None = None) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ, file)
    return {problem.variable: problem.message for problem in caught.value.problems}


def test_defaults() -> None:
    settings = load_settings({})
    assert settings.http_listen == HostPort("127.0.0.1", 8080)
    assert settings.public_url is None
    assert settings.sip_listen == (
        ListenAddress("127.0.0.1", 5060, "udp"),
        ListenAddress("127.0.0.1", 5060, "tcp"),
    )
    assert settings.sip_advertise == ()
    assert settings.rtp_listen == "127.0.0.1"
    assert settings.rtp_ports == PortRange(20000, 29999)
    assert settings.database_url == "sqlite+aiosqlite:///var/trunkline.db"
    assert settings.data_dir == Path("var")
    assert settings.sandbox_carrier
    assert [str(listen) for listen in settings.sandbox_listen] == ["udp:127.0.0.1:5080"]
    assert not settings.allow_private_destinations
    assert settings.trusted_sources == ()
    assert settings.allowed_countries == {"IN"}
    assert (settings.max_calls, settings.max_cps) == (2000, 200)
    assert settings.drain_s == 30
    assert (settings.log_format, settings.log_level) == ("text", "info")


def test_every_decided_variable_exists() -> None:
    decided = (
        "HTTP_LISTEN PUBLIC_URL SIP_LISTEN SIP_TLS_CERT SIP_TLS_KEY SIP_ADVERTISE RTP_ADVERTISE "
        "RTP_LISTEN RTP_PORTS DATABASE_URL DATA_DIR SANDBOX_CARRIER "
        "ALLOW_PRIVATE_DESTINATIONS TRUSTED_SOURCES ALLOWED_COUNTRIES MAX_CALLS MAX_CPS LOG_FORMAT DRAIN_S"
    )
    assert set(decided.split()) <= {variable.name for variable in VARIABLES}


def test_environment_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "trunkline.toml"
    file.write_text(
        'http_listen = "[::1]:9000"\n'
        "max_calls = 5\n"
        "sandbox_carrier = false\n"
        'trusted_sources = ["127.0.0.0/8", "2001:db8::/32"]\n'
        'trunkline_allowed_countries = "IN,AE"\n'
        "drain_s = 2.5\n"
    )
    settings = load_settings({"TRUNKLINE_MAX_CALLS": " 7 ", "TRUNKLINE_DRAIN_S": ""}, file)
    assert settings.http_listen == HostPort("::1", 9000)
    assert settings.max_calls == 7
    assert not settings.sandbox_carrier
    assert settings.trusted_sources == (ip_network("127.0.0.0/8"), ip_network("2001:db8::/32"))
    assert settings.allowed_countries == {"IN", "AE"}
    assert settings.drain_s == 2.5


def test_origins_of_pages() -> None:
    origins = "https://Console.example.com, http://127.0.0.1:3000"
    settings = load_settings({"TRUNKLINE_CORS_ORIGINS": origins})
    assert settings.cors_origins == ("https://console.example.com", "http://127.0.0.1:3000")
    assert load_settings({"TRUNKLINE_CORS_ORIGINS": "*"}).cors_origins == ("*",)
    assert load_settings({}).cors_origins == ()


def test_the_database_follows_the_data_directory(tmp_path: Path) -> None:
    settings = load_settings({"TRUNKLINE_DATA_DIR": str(tmp_path)})
    assert settings.database_url == f"sqlite+aiosqlite:///{tmp_path}/trunkline.db"
    url = "postgresql+asyncpg://u:p@db/trunkline"
    assert load_settings({"TRUNKLINE_DATABASE_URL": url}).database_url == url


def test_unknown_variables_are_kept_for_a_warning() -> None:
    assert load_settings({"TRUNKLINE_MAX_CALL": "1"}).unknown_variables == ("TRUNKLINE_MAX_CALL",)


FORMER = [(variable.former, variable) for variable in VARIABLES if variable.former]


def test_the_former_names() -> None:
    assert {former: variable.name for former, variable in FORMER} == {
        "TAKEOVER": "HOT_RESTART",
        "SIP_STRANGERS": "SIP_UNKNOWN_SOURCES",
    }


def test_a_former_name_is_read_and_reported(tmp_path: Path) -> None:
    settings = load_settings({"TRUNKLINE_TAKEOVER": "1", "TRUNKLINE_SIP_STRANGERS": "silent"})
    assert settings.hot_restart and settings.sip_unknown_sources == "silent"
    assert dict(settings.renamed_variables) == {
        "TRUNKLINE_TAKEOVER": "TRUNKLINE_HOT_RESTART",
        "TRUNKLINE_SIP_STRANGERS": "TRUNKLINE_SIP_UNKNOWN_SOURCES",
    }
    assert settings.unknown_variables == ()
    end = "; the former name works in this version only"
    assert sorted(settings.name_warnings()) == [
        f"TRUNKLINE_SIP_STRANGERS is now TRUNKLINE_SIP_UNKNOWN_SOURCES{end}",
        f"TRUNKLINE_TAKEOVER is now TRUNKLINE_HOT_RESTART{end}",
    ]
    file = tmp_path / "trunkline.toml"
    file.write_text("takeover = true")
    settings = load_settings({"TRUNKLINE_TAKEOVER": ""}, file)
    assert settings.hot_restart and settings.renamed_variables == (("takeover", "hot_restart"),)
    assert load_settings({"TRUNKLINE_HOT_RESTART": "1"}).name_warnings() == []


@pytest.mark.parametrize(("former", "variable"), FORMER, ids=lambda value: str(value)[:20])
def test_both_names_with_one_value_are_no_contradiction(former: str, variable: Variable) -> None:
    both = {PREFIX + former: variable.default, PREFIX + variable.name: variable.default}
    assert load_settings(both).renamed_variables == ((PREFIX + former, PREFIX + variable.name),)


def test_both_names_with_different_values_are_refused(tmp_path: Path) -> None:
    named = problems({"TRUNKLINE_TAKEOVER": "1", "TRUNKLINE_HOT_RESTART": "0"})
    assert list(named) == ["TRUNKLINE_TAKEOVER"] and "TRUNKLINE_HOT_RESTART" in named["TRUNKLINE_TAKEOVER"]
    file = tmp_path / "trunkline.toml"
    file.write_text("sip_strangers = 'silent'\nsip_unknown_sources = 'forbid'")
    assert list(problems({}, file)) == ["sip_strangers"]


def test_the_new_name_in_the_environment_wins_over_the_former_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "trunkline.toml"
    file.write_text("takeover = true")
    assert not load_settings({"TRUNKLINE_HOT_RESTART": "0"}, file).hot_restart


def test_a_wrong_value_under_a_former_name_names_the_setting() -> None:
    assert list(problems({"TRUNKLINE_SIP_STRANGERS": "loud"})) == ["TRUNKLINE_SIP_UNKNOWN_SOURCES"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_LISTEN", "8080"),
        ("HTTP_LISTEN", "::1:8080"),
        ("HTTP_LISTEN", "127.0.0.1:99999"),
        ("HTTP_LISTEN", "bad_host:80"),
        ("PUBLIC_URL", "voice.example.com"),
        ("PUBLIC_URL", "ftp://voice.example.com"),
        ("PUBLIC_URL", "https://x/?a=b"),
        ("PUBLIC_URL", "http://[::1"),
        ("SPEECH_URL", "voice.example.com"),
        ("SPEECH_VOICE", "a b"),
        ("SPEECH_MODEL", "\u00e9"),
        ("CORS_ORIGINS", "console.example.com"),
        ("CORS_ORIGINS", "https://console.example.com/"),
        ("CORS_ORIGINS", "https://console.example.com,https://key@console.example.com"),
        ("SIP_LISTEN", "127.0.0.1:5060"),
        ("SIP_LISTEN", "sctp:127.0.0.1:5060"),
        ("SIP_LISTEN", ","),
        ("SIP_LISTEN", "udp:127.0.0.1:5060,udp:127.0.0.1:5060"),
        ("SIP_TLS_VERIFY", "perhaps"),
        ("SIP_TLS_CLIENTS", "some"),
        ("SIP_ADVERTISE", "203.0.113.5,203.0.113.6"),
        ("SIP_UDP_MAX_BYTES", "-1"),
        ("SIP_KEEPALIVE_S", "soon"),
        ("SIP_LISTEN", "udp:0.0.0.0:5060"),
        ("SIP_ADVERTISE", "0.0.0.0"),
        ("SIP_ADVERTISE", "sip.example.com"),
        ("RTP_LISTEN", "localhost"),
        ("RTP_LISTEN", "0.0.0.0"),
        ("RTP_PORTS", "20000"),
        ("RTP_PORTS", "30000-20000"),
        ("RTP_PORTS", "80-90"),
        ("RTP_PORTS", "20000-20001"),
        ("RTP_THREADS", "0"),
        ("TONE_PLAN", "fr"),
        ("TONE_PLAN", "425/0"),
        ("DATABASE_URL", "mysql://x"),
        ("NODE_SIP", "10.0.0.11"),
        ("NODE_SIP", "0.0.0.0:5070"),
        ("NODE_SIP", "a.example.com:5070"),
        ("SANDBOX_CARRIER", "maybe"),
        ("SANDBOX_LISTEN", "tcp:127.0.0.1:5080"),
        ("SANDBOX_RTP_PORTS", "29990-30100"),
        ("TRUSTED_SOURCES", "127.0.0.1/33"),
        ("TRUSTED_SOURCES", "127.0.0.1/8"),
        ("ALLOWED_COUNTRIES", "India"),
        ("MAX_CALLS", "-1"),
        ("MAX_CALLS", "many"),
        ("MAX_CPS", "1.5"),
        ("DRAIN_S", "1e3"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_values_that_cannot_be_used_are_named(name: str, value: str) -> None:
    assert list(problems({PREFIX + name: value})) == [PREFIX + name]


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (4, 3), (9, 8), (64, 8)])
def test_the_engine_gets_the_processors_that_the_loop_leaves(
    monkeypatch: pytest.MonkeyPatch, processors: int, threads: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(processors)))
    assert load_settings({}).rtp_threads == threads
    assert load_settings({PREFIX + "RTP_THREADS": "5"}).rtp_threads == 5


def test_a_tls_address_needs_its_files() -> None:
    listen = {"TRUNKLINE_SIP_LISTEN": "tls:127.0.0.1:5061"}
    assert set(problems(listen)) == {"TRUNKLINE_SIP_TLS_CERT", "TRUNKLINE_SIP_TLS_KEY"}
    with_cert = {"TRUNKLINE_SIP_TLS_CERT": "cert.pem"}
    assert set(problems(listen | with_cert)) == {"TRUNKLINE_SIP_TLS_KEY"}
    assert set(problems(with_cert)) == {"TRUNKLINE_SIP_TLS_KEY"}
    files = with_cert | {"TRUNKLINE_SIP_TLS_KEY": "key.pem"}
    assert load_settings(listen | files).sip_tls_key == Path("key.pem")
    asking = listen | files | {"TRUNKLINE_SIP_TLS_CLIENTS": "optional"}
    assert set(problems(asking)) == {"TRUNKLINE_SIP_TLS_CA"}
    assert load_settings(asking | {"TRUNKLINE_SIP_TLS_CA": "ca.pem"}).sip_tls_clients == "optional"


def test_the_user_agent_gets_what_was_set() -> None:
    plain = user_agent_settings(load_settings({}))
    assert (plain.tls, plain.max_udp_request_bytes, plain.streams.keepalive_s) == (None, 1300, 30)
    environment = {
        "TRUNKLINE_SIP_TLS_CERT": "cert.pem",
        "TRUNKLINE_SIP_TLS_KEY": "key.pem",
        "TRUNKLINE_SIP_TLS_CA": "ca.pem",
        "TRUNKLINE_SIP_TLS_VERIFY": "0",
        "TRUNKLINE_SIP_TLS_WILDCARDS": "1",
        "TRUNKLINE_SIP_TLS_CLIENTS": "required",
        "TRUNKLINE_SIP_UDP_MAX_BYTES": "0",
        "TRUNKLINE_SIP_KEEPALIVE_S": "0",
    }
    told = user_agent_settings(load_settings(environment))
    files = (Path("cert.pem"), Path("key.pem"), Path("ca.pem"))
    required = ClientCertificates.REQUIRED
    assert told.tls == TlsSettings(*files, verify_servers=False, clients=required, wildcards=True)
    assert (told.max_udp_request_bytes, told.streams.keepalive_s) == (0, 0)


def test_an_advertised_address_of_each_kind() -> None:
    both = {"TRUNKLINE_SIP_LISTEN": "udp:0.0.0.0:5060,udp:[::]:5060"}
    assert set(problems(both | {"TRUNKLINE_SIP_ADVERTISE": "203.0.113.5"})) == {"TRUNKLINE_SIP_LISTEN"}
    settings = load_settings(both | {"TRUNKLINE_SIP_ADVERTISE": "203.0.113.5, 2001:db8::5"})
    assert [listen.advertise for listen in sip_listens(settings)] == ["203.0.113.5", "2001:db8::5"]


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"TRUNKLINE_SIP_LISTEN": "udp:10.0.0.5:5060,udp:10.0.0.6:5060"}, HostPort("10.0.0.5", 0)),
        ({"TRUNKLINE_NODE_SIP": "10.0.0.11:5070"}, HostPort("10.0.0.11", 5070)),
        ({"TRUNKLINE_SIP_LISTEN": "udp:0.0.0.0:5060", "TRUNKLINE_SIP_ADVERTISE": "203.0.113.5"}, None),
    ],
)
def test_other_nodes_send_to_an_address_of_this_machine(
    environment: dict[str, str], address: HostPort | None
) -> None:
    assert load_settings(environment).node_sip == address


def test_all_problems_are_named_at_once() -> None:
    named = problems({"TRUNKLINE_MAX_CALLS": "x", "TRUNKLINE_RTP_PORTS": "y", "TRUNKLINE_LOG_FORMAT": "z"})
    assert set(named) == {"TRUNKLINE_MAX_CALLS", "TRUNKLINE_RTP_PORTS", "TRUNKLINE_LOG_FORMAT"}


def test_a_password_in_a_wrong_url_is_not_repeated() -> None:
    assert "hunter2" not in str(problems({"TRUNKLINE_DATABASE_URL": "mysql://u:hunter2@db/x"}))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("http_listn = '127.0.0.1:1'", "http_listn"),
        ("max_calls = [1]", "max_calls"),
        ("max_calls = {a = 1}", "max_calls"),
        ("max_calls = 1\ntrunkline_max_calls = 2", "trunkline_max_calls"),
        ("max_calls = ", "--config"),
        ("max_calls = 0", "TRUNKLINE_MAX_CALLS"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "trunkline.toml"
    file.write_text(text)
    assert list(problems({}, file)) == [named]


def test_a_near_miss_in_a_file_is_hinted_at(tmp_path: Path) -> None:
    file = tmp_path / "trunkline.toml"
    file.write_text("http_listn = 'x'")
    assert "did you mean http_listen?" in problems({}, file)["http_listn"]


def test_a_missing_file(tmp_path: Path) -> None:
    assert list(problems({}, tmp_path / "missing.toml")) == ["--config"]


def test_development_allows_private_destinations() -> None:
    settings = load_settings(
        {"TRUNKLINE_HTTP_LISTEN": "localhost:0", "TRUNKLINE_SIP_LISTEN": "udp:127.8.0.1:0,tcp:[::1]:0"}
    )
    assert not settings.allow_private_destinations
    assert for_development(settings).allow_private_destinations


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_LISTEN", "0.0.0.0:8080"),
        ("HTTP_LISTEN", "voice.example.com:8080"),
        ("SIP_LISTEN", "udp:127.0.0.1:5060,udp:192.0.2.7:5060,tcp:192.0.2.7:5060"),
        ("RTP_LISTEN", "192.0.2.7"),
        ("SANDBOX_LISTEN", "udp:[2001:db8::7]:5080"),
    ],
)
def test_development_refuses_addresses_that_others_reach(name: str, value: str) -> None:
    settings = load_settings({PREFIX + name: value})
    with pytest.raises(ConfigError) as caught:
        for_development(settings)
    assert [problem.variable for problem in caught.value.problems] == [PREFIX + name]


def test_the_key_of_a_speech_server_is_not_told() -> None:
    settings = load_settings({PREFIX + "SPEECH_URL": "http://[::1]:8880/v1/", PREFIX + "SPEECH_KEY": "sk-1"})
    assert (settings.speech_url, settings.speech_key) == ("http://[::1]:8880/v1", "sk-1")
    assert "sk-1" not in repr(settings)
    assert "sk secret" not in problems({PREFIX + "SPEECH_KEY": "sk secret"})[PREFIX + "SPEECH_KEY"]


TURN = "turn:turn.example.com"


def test_turn_servers_need_a_credential_or_the_secret() -> None:
    found = problems({"TRUNKLINE_ICE_SERVERS": f"stun:stun.example.com,{TURN}"})
    assert found == {
        "TRUNKLINE_ICE_SERVERS": f"{TURN} needs USER:PASSWORD@ before its host, or TRUNKLINE_TURN_SECRET"
    }
    assert "TRUNKLINE_TURN_SECRET" in problems({"TRUNKLINE_TURN_SECRET": "hush"})
    settings = load_settings({"TRUNKLINE_ICE_SERVERS": TURN, "TRUNKLINE_TURN_SECRET": "hush"})
    assert settings.ice_servers[0].needs_secret and settings.turn_secret == "hush"


def test_credentials_of_turn_servers_are_not_told() -> None:
    own = load_settings({"TRUNKLINE_ICE_SERVERS": "turn:asha:hush@turn.example.com"})
    shared = load_settings({"TRUNKLINE_ICE_SERVERS": TURN, "TRUNKLINE_TURN_SECRET": "hush"})
    for settings in (own, shared):
        assert "hush" not in repr(settings) + str(shown_settings(settings)) + str(settings.ice_servers)
    found = problems({"TRUNKLINE_ICE_SERVERS": "turn:asha:hush@turn.example.com:x"})
    assert "server 1 " in found["TRUNKLINE_ICE_SERVERS"] and "hush" not in str(found)
