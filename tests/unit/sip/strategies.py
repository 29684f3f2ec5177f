"""Hypothesis strategies for well-formed SIP values."""

import string

from hypothesis import strategies as st

from sip.message.fields import NameAddr, Via
from sip.message.grammar import Params
from sip.message.uri import SipUri

TOKEN = string.ascii_letters + string.digits + "-.!%*_+`'~"

tokens = st.text(TOKEN, min_size=1, max_size=12)
param_names = tokens.map(str.lower)
quoted = st.text(st.characters(exclude_characters='"\\\r\n', exclude_categories=["Cs"]), max_size=12).map(
    lambda text: f'"{text}"'
)
param_values = st.none() | tokens | quoted | st.just("") | st.just("[::1]")
uri_param_values = st.none() | tokens | st.just("[2001:db8::1]") | st.just("%40/:&+$")
hosts = (
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,5}){0,2}", fullmatch=True)
    | st.ip_addresses(v=4).map(str)
    | st.ip_addresses(v=6).map(str)
)
ports = st.none() | st.integers(1, 65535)
users = st.text(string.ascii_letters + string.digits + "-_.!~*'()&=+$,;?/", min_size=1, max_size=16)
escaped_users = st.lists(users | st.sampled_from(["%00", "%23", "%40", "%FF"]), min_size=1, max_size=3).map(
    "".join
)
display_names = st.none() | st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x7f"), min_size=1, max_size=20
)


def params(*reserved: str, values: st.SearchStrategy[str | None] = param_values) -> st.SearchStrategy[Params]:
    """Parameters with names of their own, none of them reserved."""
    names = param_names.filter(lambda name: name not in reserved)
    pairs = st.tuples(names, values)
    return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0]).map(tuple)


sip_uris = st.builds(
    SipUri,
    scheme=st.sampled_from(["sip", "sips"]),
    user=st.none() | escaped_users,
    password=st.none(),
    host=hosts,
    port=ports,
    params=params(values=uri_param_values),
    headers=st.none() | st.sampled_from(["", "Subject=x", "Replaces=a%40b%3Bto-tag%3D1&X=y"]),
)
tel_uris = st.builds(
    SipUri,
    scheme=st.just("tel"),
    user=st.from_regex(r"\+?[0-9][0-9.()-]{0,14}", fullmatch=True),
    params=params(values=uri_param_values),
)
uris = sip_uris | tel_uris
name_addrs = st.builds(NameAddr, display_name=display_names, uri=uris, params=params("tag"))
vias = st.builds(
    Via,
    transport=st.sampled_from(["UDP", "TCP", "TLS", "WSS"]),
    host=hosts,
    port=ports,
    branch=st.none() | tokens,
    received=st.none() | st.ip_addresses().map(str),
    rport=st.none() | st.just("") | st.integers(1, 65535),
    params=params("branch", "received", "rport"),
)
