"""
Settings of the server: environment over TOML file over default.

Every setting is declared once in `Settings`; the environment spells it ``TRUNKLINE_NAME``, the file
``name`` (or ``trunkline_name``) in lower case. Problems are collected, so that one run of the command names
every variable to correct.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from api.process.combinations import PREFIX, Problem, check_together
from api.process.values import (
    Choice,
    HostPort,
    IpNetwork,
    ListenAddress,
    Number,
    PortRange,
    WholeNumber,
    is_loopback,
    parse_accounts,
    parse_advertise,
    parse_advertises,
    parse_bool,
    parse_countries,
    parse_database_url,
    parse_digest_algorithms,
    parse_hep_target,
    parse_hold_music,
    parse_host_port,
    parse_ip,
    parse_listens,
    parse_name_servers,
    parse_networks,
    parse_node,
    parse_node_sip,
    parse_origins,
    parse_path,
    parse_ports,
    parse_realm,
    parse_secret_keys,
    parse_sip_proxy,
    parse_stream_url,
    parse_tone_plan,
    parse_url,
    parse_word,
)
from callcontrol.messaging.models import DEFAULT_MESSAGES_PER_SECOND, MAX_MESSAGES_PER_SECOND
from callcontrol.models.accounts import MAX_RETENTION_DAYS
from callcontrol.recordings.objects import ObjectFolder, parse_object_folder
from callcontrol.webrtc.ice_servers import IceServer, parse_ice_servers
from media.audio import TONE_PLANS
from media.audio.recognition import DEFAULT_MODELS, RECOGNIZER_PROTOCOLS, RecognizerProtocol
from media.streams import WEBSOCKET_DIALECTS

__all__ = [
    "PREFIX",
    "VARIABLES",
    "ConfigError",
    "Problem",
    "Settings",
    "Variable",
    "for_development",
    "load_settings",
    "shown_settings",
]

# A thread relays the audio of hundreds of calls; one event loop has no more for so many threads.
_MAX_DEFAULT_THREADS = 8


class ConfigError(Exception):
    """The settings are invalid; `problems` names every wrong variable."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Variable:
    """
    One setting: its name without prefix, its default as text (empty: not set), parser and help line.

    `former` is its name in earlier versions, which is still read.
    """

    name: str
    default: str
    parse: Callable[[str], Any]
    help: str
    former: str = ""

    @property
    def field(self) -> str:
        """Name of the attribute of `Settings` and of the key in a TOML file."""
        return self.name.lower()


def _setting(
    default: str, parse: Callable[[str], Any], help_text: str, *, former: str = "", secret: bool = False
) -> Any:
    """Declare a setting, as for `Variable`; a secret one is left out of the representation."""
    return field(
        repr=not secret, metadata={"default": default, "parse": parse, "help": help_text, "former": former}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, validated; the environment spells their names in upper case."""

    http_listen: HostPort = _setting("127.0.0.1:8080", parse_host_port, "address of the REST API")
    public_url: str | None = _setting(
        "", parse_url, "address at which customers reach the API (default: the address listened on)"
    )
    cors_origins: tuple[str, ...] = _setting(
        "", parse_origins, "origins of web pages that may read responses (CORS); * for all"
    )
    console: bool = _setting("1", parse_bool, "1 serves the console, pages for people, at /console")
    console_operators: frozenset[str] = _setting(
        "",
        parse_accounts,
        "accounts whose keys of scope admin see the console's page of the server (default: the only one)",
    )
    sip_listen: tuple[ListenAddress, ...] = _setting(
        "udp:127.0.0.1:5060,tcp:127.0.0.1:5060",
        parse_listens,
        "SIP transports and addresses, comma-separated",
    )
    sip_tls_cert: Path | None = _setting("", parse_path, "certificate chain of the tls: listener (PEM)")
    sip_tls_key: Path | None = _setting("", parse_path, "private key of the tls: listener (PEM)")
    sip_tls_ca: Path | None = _setting(
        "", parse_path, "certificate authorities trusted for peers (PEM; default: the system's)"
    )
    sip_tls_verify: bool = _setting(
        "1", parse_bool, "1 refuses outbound TLS to a peer whose certificate does not prove its name"
    )
    sip_tls_wildcards: bool = _setting(
        "0", parse_bool, "1 accepts a certificate for *.example.com for the hosts of that domain"
    )
    sip_tls_clients: str = _setting(
        "none",
        Choice("none", "optional", "required"),
        "client certificates asked of peers that connect: none, optional or required",
    )
    sip_advertise: tuple[str, ...] = _setting(
        "", parse_advertises, "public SIP addresses behind 1:1 NAT: one IPv4, one IPv6, or one of each"
    )
    sip_udp_max_bytes: int = _setting(
        "1300",
        WholeNumber(0, 65_535),
        "larger requests go by TCP if the peer accepts it (RFC 3261 18.1.1); 0 never",
    )
    sip_keepalive_s: float = _setting(
        "30", Number(0, 3600), "silence after which a connection in use gets a keep-alive (RFC 5626); 0 never"
    )
    sip_realm: str = _setting("trunkline", parse_realm, "realm of digest challenges to callers")
    sip_digest: tuple[str, ...] = _setting(
        "SHA-512-256,SHA-256,MD5",
        parse_digest_algorithms,
        "digest algorithms of those challenges, in this order; some old clients read only the first",
    )
    sip_unknown_sources: str = _setting(
        "forbid",
        Choice("forbid", "silent"),
        "answer to unknown SIP sources: forbid (at most one 403 in 10 s) or silent",
        former="SIP_STRANGERS",
    )
    sip_fronts: tuple[IpNetwork, ...] = _setting(
        "",
        parse_networks,
        "CIDRs of SIP proxies in front of this server; from them alone X-Trunkline-Source is believed",
    )
    sip_outbound_proxy: str | None = _setting(
        "", parse_sip_proxy, "SIP proxy of carriers that have none of their own, such as the front"
    )
    dns_servers: tuple[HostPort, ...] = _setting(
        "", parse_name_servers, "name servers for gateways, comma-separated (default: those of resolv.conf)"
    )
    options_interval_s: float = _setting(
        "30", Number(1, 3600), "seconds between OPTIONS pings of a gateway that is pinged"
    )
    sip_min_se: int = _setting(
        "90", WholeNumber(1, 86_400), "shortest session interval a peer may ask for, in seconds (RFC 4028)"
    )
    rtp_listen: str = _setting("127.0.0.1", parse_ip, "address of the RTP sockets")
    rtp_advertise: str | None = _setting("", parse_advertise, "public RTP address behind 1:1 NAT")
    rtp_ports: PortRange = _setting("20000-29999", parse_ports, "range of RTP ports")
    webrtc_port: int = _setting(
        "31000", WholeNumber(0, 65_535), "UDP port of browsers' calls, at the address of RTP; 0 for any"
    )
    ice_servers: tuple[IceServer, ...] = _setting(
        "",
        parse_ice_servers,
        "STUN and TURN servers that pages with a telephone get with their token, with USER:PASSWORD@ before "
        "the host or TURN_SECRET",
        secret=True,
    )
    turn_secret: str | None = _setting(
        "",
        parse_word,
        "secret shared with the TURN servers that have no USER:PASSWORD@: pages get credentials that expire "
        "with their token (TURN REST API, use-auth-secret of coturn)",
        secret=True,
    )
    rtp_threads: int = _setting(
        "",
        WholeNumber(1, 64),
        "threads of the media engine (default: one less than the processors, at least 1 and at most 8)",
    )
    media_timeout_s: float = _setting("60", Number(0, 86_400), "seconds without RTP that end a call; 0 never")
    hold_timeout_s: float = _setting(
        "0", Number(0, 86_400), "seconds without RTP that end a call on hold; 0 never"
    )
    stream_default_protocol: str = _setting(
        "exotel",
        Choice(*sorted(WEBSOCKET_DIALECTS)),
        f"stream protocol where neither call nor account names one: {', '.join(sorted(WEBSOCKET_DIALECTS))}",
    )
    stream_start_timeout_s: float = _setting(
        "0", Number(0, 3600), "seconds a voice agent may be silent at the beginning of a call; 0 no limit"
    )
    speech_url: str | None = _setting(
        "",
        parse_url,
        "base address of a server with OpenAI's speech endpoint that speaks texts, such as "
        "https://api.openai.com/v1 (default: espeak-ng speaks them)",
    )
    speech_key: str | None = _setting("", parse_word, "key of the speech server", secret=True)
    speech_model: str = _setting("gpt-4o-mini-tts", parse_word, "model of the speech server")
    speech_voice: str = _setting("alloy", parse_word, "voice of the speech server for texts that name none")
    recognizer_url: str | None = _setting(
        "",
        parse_stream_url,
        "address of a server that recognises speech, such as wss://api.deepgram.com/v1/listen or "
        "wss://api.openai.com/v1/realtime (default: speech is not recognised)",
    )
    recognizer_protocol: RecognizerProtocol = _setting(
        "deepgram",
        Choice(*RECOGNIZER_PROTOCOLS),
        "messages of the recogniser: Deepgram's streaming endpoint, or OpenAI's realtime transcription",
    )
    recognizer_key: str | None = _setting("", parse_word, "key of the recogniser", secret=True)
    recognizer_model: str | None = _setting(
        "",
        parse_word,
        "model of the recogniser (default: "
        + ", ".join(f"{model} of {protocol}" for protocol, model in DEFAULT_MODELS.items())
        + ")",
    )
    tone_plan: str = _setting(
        "in",
        parse_tone_plan,
        f"ringing tone of a country ({', '.join(TONE_PLANS)}), or one written out such as 425/1000,0/4000",
    )
    hold_music: str = _setting(
        "tones", parse_hold_music, "music on hold: a WAV file, tones (a built-in melody) or none"
    )
    database_url: str = _setting(
        "", parse_database_url, "SQLAlchemy URL (default: SQLite in the data directory)", secret=True
    )
    data_dir: Path = _setting("./var", parse_path, "folder of the database, the recordings and secret.key")
    secret_key: tuple[bytes, ...] = _setting(
        "",
        parse_secret_keys,
        "key that encrypts secrets in the database: 32 bytes in base64; after a comma the keys it replaces "
        "(default: secret.key in the data directory, made at the first start)",
        secret=True,
    )
    node: str = _setting(
        "local",
        parse_node,
        "name of this server among those that share a database or a data directory; stable over restarts",
    )
    node_url: str | None = _setting(
        "",
        parse_url,
        "address at which other servers on its database reach the API of this one (default: the address "
        "listened on, unless that is any)",
    )
    node_sip: HostPort | None = _setting(
        "",
        parse_node_sip,
        "address at which this server receives the SIP of other servers on its database, for conferences of "
        "them all; port 0 is any (default: the first address of SIP_LISTEN, any port)",
    )
    webhook_retention_days: int = _setting(
        "30", WholeNumber(1, 3650), "days that finished webhook deliveries are kept"
    )
    recordings_store: ObjectFolder | None = _setting(
        "",
        parse_object_folder,
        "object store that finished recordings are moved to: s3://BUCKET/PREFIX; region, endpoint and keys "
        "in AWS_ variables (default: they stay in the data directory)",
    )
    recording_retention_days: int = _setting(
        "180",
        WholeNumber(0, MAX_RETENTION_DAYS),
        "days that recordings are kept, unless the account sets its own; 0 for ever",
    )
    sandbox_carrier: bool = _setting("1", parse_bool, "1 runs the sandbox carrier in this process")
    sandbox_listen: tuple[ListenAddress, ...] = _setting(
        "udp:127.0.0.1:5080", parse_listens, "SIP address of the sandbox carrier"
    )
    sandbox_rtp_ports: PortRange = _setting("30000-30999", parse_ports, "RTP ports of the sandbox carrier")
    number_inventory: str = _setting(
        "sandbox", Choice("sandbox", "none"), "numbers for sale: those of the sandbox, or none"
    )
    allow_private_destinations: bool = _setting(
        "0",
        parse_bool,
        "1 lets webhooks and streams reach private addresses and plain http and ws; serve --dev sets it",
    )
    trusted_sources: tuple[IpNetwork, ...] = _setting(
        "", parse_networks, "CIDRs that are never banned nor rate-limited"
    )
    allowed_countries: frozenset[str] = _setting(
        "IN", parse_countries, "countries that may be dialled (ISO 3166 codes)"
    )
    messages_per_second: int = _setting(
        str(DEFAULT_MESSAGES_PER_SECOND),
        WholeNumber(1, MAX_MESSAGES_PER_SECOND),
        "messages per second of a channel that sets no pace of its own",
    )
    max_calls: int = _setting("2000", WholeNumber(1, 1_000_000), "active calls at which new ones are refused")
    max_cps: int = _setting(
        "200", WholeNumber(1, 100_000), "new calls per second above which new ones are refused"
    )
    hot_restart: bool = _setting(
        "0",
        parse_bool,
        "1 lets a server of another NODE in this data directory take over the addresses of this one",
        former="TAKEOVER",
    )
    drain_s: float = _setting("30", Number(0, 86_400), "seconds that active calls may go on after SIGTERM")
    hep_target: HostPort | None = _setting(
        "", parse_hep_target, "capture server that gets copies of SIP messages (HEPv3, Homer)"
    )
    hep_id: int = _setting("2001", WholeNumber(0, 4_294_967_295), "capture id of this server in HEP")
    hep_password: str | None = _setting("", str, "authentication key in HEP", secret=True)
    log_format: str = _setting("text", Choice("text", "json"), "form of log lines: text or json")
    log_level: str = _setting(
        "info",
        Choice("debug", "info", "warning", "error"),
        "lowest level that is logged: debug, info, warning or error",
    )
    unknown_variables: tuple[str, ...] = ()
    renamed_variables: tuple[tuple[str, str], ...] = ()
    """Former names that were used, each with its present name."""

    def name_warnings(self) -> list[str]:
        """One line for each variable whose name is unknown or has changed."""
        unknown = [
            f"{name} is no setting of this server; see trunkline serve --help"
            for name in self.unknown_variables
        ]
        return unknown + [
            f"{former} is now {name}; the former name works in this version only"
            for former, name in self.renamed_variables
        ]


VARIABLES: tuple[Variable, ...] = tuple(
    Variable(setting.name.upper(), **setting.metadata) for setting in fields(Settings) if setting.metadata
)
"""The declarations of `Settings`."""


def load_settings(environ: Mapping[str, str], config_file: Path | None = None) -> Settings:
    """
    Read every setting from `environ`, then from the TOML file, then from its default.

    Raises:
        ConfigError: A value, a key of the file, or the combination of settings is invalid.
    """
    problems: list[Problem] = []
    renamed: list[tuple[str, str]] = []
    from_file = _read_file(config_file, problems, renamed) if config_file is not None else {}
    from_environment = _read_environment(environ, problems, renamed)
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        text, source = variable.default, "the default"
        if variable.field in from_file:
            text, source = from_file[variable.field], str(config_file)
        if variable.field in from_environment:
            text, source = from_environment[variable.field], "the environment"
        try:
            values[variable.field] = variable.parse(text) if text else _empty(variable)
        except ValueError as error:
            problems.append(Problem(PREFIX + variable.name, str(error), source))
    if not problems:
        check_together(values, problems)
    if problems:
        raise ConfigError(problems)
    if values["database_url"] is None:
        values["database_url"] = f"sqlite+aiosqlite:///{values['data_dir'] / 'trunkline.db'}"
    if values["node_sip"] is None and not values["sip_listen"][0].is_any:
        values["node_sip"] = HostPort(values["sip_listen"][0].host, 0)
    if values["rtp_threads"] is None:
        values["rtp_threads"] = _spare_processors()
    known = {PREFIX + name for variable in VARIABLES for name in (variable.name, variable.former) if name}
    unknown = tuple(sorted(name for name in environ if name.startswith(PREFIX) and name not in known))
    return Settings(**values, unknown_variables=unknown, renamed_variables=tuple(renamed))


def shown_settings(settings: Settings) -> dict[str, str]:
    """Values of all settings that are no secret, by the names of their variables."""
    public = {setting.name for setting in fields(Settings) if setting.metadata and setting.repr}
    return {
        PREFIX + variable.name: _shown(getattr(settings, variable.field))
        for variable in VARIABLES
        if variable.field in public
    }


def _shown(value: Any) -> str:
    if isinstance(value, tuple | frozenset):
        return ", ".join(sorted(map(str, value)) if isinstance(value, frozenset) else map(str, value))
    return "" if value is None else str(value)


def for_development(settings: Settings) -> Settings:
    """
    Change settings for development: webhooks and streams may reach private and loopback addresses.

    Such a server listens on loopback only, since whoever reaches it can have it connect to the machine's own
    services.

    Raises:
        ConfigError: The settings name another address to listen on.
    """
    listened = [("HTTP_LISTEN", settings.http_listen.host), ("RTP_LISTEN", settings.rtp_listen)]
    listened += [("SIP_LISTEN", listen.host) for listen in settings.sip_listen]
    if settings.sandbox_carrier:
        listened += [("SANDBOX_LISTEN", listen.host) for listen in settings.sandbox_listen]
    problems = [
        Problem(PREFIX + name, f"{host} is no loopback address, and --dev listens on these only", "")
        for name, host in dict.fromkeys(listened)
        if not is_loopback(host)
    ]
    if problems:
        raise ConfigError(problems)
    return replace(settings, allow_private_destinations=True)


def _spare_processors() -> int:
    """Return how many processors this process may use, without the one of the event loop: 1 to 8."""
    return min(_MAX_DEFAULT_THREADS, max(1, len(os.sched_getaffinity(0)) - 1))


def _read_environment(
    environ: Mapping[str, str], problems: list[Problem], renamed: list[tuple[str, str]]
) -> dict[str, str]:
    texts: dict[str, str] = {}
    for variable in VARIABLES:
        # An empty variable counts as not set: compose files and shells pass such variables.
        text = environ.get(PREFIX + variable.name, "").strip()
        former = environ.get(PREFIX + variable.former, "").strip() if variable.former else ""
        if former:
            renamed.append((PREFIX + variable.former, PREFIX + variable.name))
        if text and former not in ("", text):
            problems.append(_two_names(PREFIX + variable.former, PREFIX + variable.name, "the environment"))
        if text or former:
            texts[variable.field] = text or former
    return texts


def _two_names(former: str, name: str, source: str) -> Problem:
    return Problem(
        former, f"is the former name of {name}, which is set to another value; keep {name}", source
    )


def _empty(variable: Variable) -> Any:
    if variable.parse in (parse_networks, parse_countries, parse_name_servers):
        return variable.parse("")
    lists = (parse_advertises, parse_origins, parse_secret_keys, parse_ice_servers)
    return () if variable.parse in lists else None


def _read_file(path: Path, problems: list[Problem], renamed: list[tuple[str, str]]) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        problems.append(Problem("--config", f"cannot be read: {error.strerror}", str(path)))
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(Problem("--config", f"is not TOML: {error}", str(path)))
        return {}
    fields = {variable.field for variable in VARIABLES}
    former = {variable.former.lower(): variable.field for variable in VARIABLES if variable.former}
    texts: dict[str, str] = {}
    for key, value in table.items():
        name = key.removeprefix(PREFIX.lower())
        if name not in fields and name not in former:
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            problems.append(Problem(key, f"no setting has this name{hint}", str(path)))
        elif name in texts:
            problems.append(Problem(key, "is given twice", str(path)))
        else:
            _take(texts, name, value, path, problems)
    for name in former.keys() & texts.keys():
        text, field = texts.pop(name), former[name]
        renamed.append((name, field))
        if texts.setdefault(field, text) != text:
            problems.append(_two_names(name, field, str(path)))
    return texts


def _take(texts: dict[str, str], name: str, value: object, path: Path, problems: list[Problem]) -> None:
    text = _toml_text(value)
    if text is None:
        kinds = "a string, a number, true, false or a list of strings"
        problems.append(Problem(name, f"must be {kinds}", str(path)))
    else:
        texts[name] = text


def _toml_text(value: object) -> str | None:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return None
