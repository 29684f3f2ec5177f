"""A call: its facts, its time axis, its recording, and what can be exported."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from pydantic_core import to_json

from api.console.operations import ask
from api.console.page import Pages
from api.console.pcap import capture
from api.console.rendering import refusal_text
from api.console.timeline import timeline_of
from api.console.visit import HOME, Visit
from api.console.waveform import Unreadable, read_waveform
from api.http.files import PrivateFile, send_object
from api.http.session import OPERATOR, signed_in_by
from callcontrol.errors import DomainError, Forbidden, NodeUnreachable, NotFound, Unauthorized
from callcontrol.models import CallRecord
from callcontrol.webrtc.listeners import LISTEN_SCOPE, CallListener

__all__ = ["pages"]

_ONE: Final = f"{HOME}/calls/{{sid}}"

pages = Pages("call", scope="calls.read", writes="calls.write", under="calls", every_account=True)


async def _call(visit: Visit) -> CallRecord:
    """
    Call of the path.

    Raises:
        NotFound: There is no such call of this account; it may be another's.
    """
    try:
        return await visit.call(visit.sid())
    except Forbidden:
        raise NotFound(refusal_text("not_your_call")) from None


@pages.get(_ONE)
async def show(visit: Visit) -> web.StreamResponse:
    """Show a call; a script draws its time axis and keeps it up to date."""
    record = await _call(visit)
    carrier = visit.storage.directory.carrier(record.carrier_sid) if record.carrier_sid else None
    # The name of a trunk of the platform is the operator's.
    trunk = carrier.name if carrier is not None and carrier.account_sid == record.account_sid else None
    listeners = await visit.services.listeners.of_call(record.account_sid, record.call_sid)
    return visit.show(
        "call.html",
        call=record,
        trunk=trunk,
        writes=visit.may("calls.write"),
        listeners=listeners,
        names=await _names(visit, listeners),
    )


@pages.get(_ONE + "/timeline")
async def timeline(visit: Visit) -> web.StreamResponse:
    """Respond with the time axis for the script."""
    return _json(await timeline_of(visit, await _call(visit)))


@pages.get(_ONE + "/call.json")
async def export(visit: Visit) -> web.StreamResponse:
    """Respond with the time axis as a file."""
    record = await _call(visit)
    response = _json(await timeline_of(visit, record))
    response.headers["Content-Disposition"] = f'attachment; filename="call-{record.call_sid}.json"'
    return response


@pages.get(_ONE + "/sip.pcap")
async def export_sip(visit: Visit) -> web.StreamResponse:
    """Respond with the signalling as a capture file."""
    record = await _call(visit)
    trace = visit.services.calls.trace(record.call_sid)
    if not trace and await visit.storage.membership.is_another(record.node):
        raise NodeUnreachable(record.node, refusal_text("trace_kept"))
    if not trace:
        raise NotFound(refusal_text("no_signalling"))
    addresses = visit.services.calls.user_agent.addresses
    local = f"{addresses[0].host}:{addresses[0].port}" if addresses else "127.0.0.1:5060"
    response = web.Response(body=capture(trace, local), content_type="application/vnd.tcpdump.pcap")
    response.headers["Content-Disposition"] = f'attachment; filename="call-{record.call_sid}.pcap"'
    return response


@pages.get(_ONE + "/recording.wav")
async def recording(visit: Visit) -> web.StreamResponse:
    """Respond with the recording; HEAD and Range are supported."""
    record = await _call(visit)
    found = await visit.services.recordings.file(visit.account_sid, record.call_sid)
    if isinstance(found, Path):
        return PrivateFile(found, "audio/wav")
    return await send_object(found, "audio/wav", visit.services.recordings.read, visit.request)


@pages.get(_ONE + "/waveform")
async def waveform(visit: Visit) -> web.StreamResponse:
    """Respond with the waveform of the recording; that of one in an object store is not computed."""
    record = await _call(visit)
    found = await visit.services.recordings.file(visit.account_sid, record.call_sid)
    if not isinstance(found, Path):
        return _json({"duration_s": None, "channels": []})
    try:
        wave = await asyncio.to_thread(read_waveform, found)
    except Unreadable:
        raise NotFound(refusal_text("no_recording")) from None
    return _json({"duration_s": wave.duration_s, "channels": wave.channels})


@pages.post(_ONE + "/hangup")
async def hang_up(visit: Visit) -> web.StreamResponse:
    """Hang up; from the list of active calls it leads back there."""
    record = await visit.services.calls.hangup_call(visit.account_sid, visit.sid())
    if visit.form.get("back") == "live":
        visit.go(f"{HOME}/live", done="hung_up")
    visit.go(f"{HOME}/calls/{record.call_sid}", done="hung_up")


@pages.post(_ONE + "/mute")
async def mute(visit: Visit) -> web.StreamResponse:
    """Mute what a party of an active call says, or end that; leads back to the active calls."""
    wanted = {name: visit.form.get(name, "") for name in ("party", "mute_status")}
    path = {"sid": visit.account_sid, "callSid": visit.sid()}
    await ask(visit, "update_live_call", path, form=wanted)
    visit.go(f"{HOME}/live", done="muted" if wanted["mute_status"] == "mute" else "unmuted")


@pages.post(_ONE + "/listen", scope=LISTEN_SCOPE)
async def listen(visit: Visit) -> web.StreamResponse:
    """Listen in on an active call with the page; a refusal is JSON too, for the script."""
    services, token, account_sid = visit.services, visit.token, visit.account_sid
    principal = visit.principal

    async def is_admitted() -> bool:
        try:
            found = (await signed_in_by(services.storage, token)).principal
        except Unauthorized:
            return False
        except DomainError:
            return True  # a database that does not answer ends nothing
        return LISTEN_SCOPE in found.scopes and found.account_sid == account_sid

    try:
        listener, answer = await services.listeners.open(
            account_sid, visit.sid(), visit.form.get("sdp", ""), principal.key_id, is_admitted
        )
    except NodeUnreachable:
        raise
    except DomainError as refusal:
        return _json({"problem": refusal.message}, visit.console.status_of(refusal))
    return _json({"listener_sid": listener.listener_sid, "sdp": answer})


@pages.post(_ONE + "/listen/{listener}/end", scope=LISTEN_SCOPE)
async def end_listening(visit: Visit) -> web.StreamResponse:
    """End the page's listening."""
    await visit.services.listeners.close_one(visit.account_sid, visit.sid(), visit.sid("listener"))
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _names(visit: Visit, listeners: Sequence[CallListener]) -> dict[str, str]:
    """Names of the keys that listened, by their ids; an operator's name is its own."""
    found = {}
    for key_id in {listener.listened_by for listener in listeners}:
        if not key_id.startswith(OPERATOR):
            with contextlib.suppress(NotFound):
                key = await visit.storage.keys.get(visit.account_sid, key_id)
                found[key_id] = key.name or f"{key.prefix}\u2026"
    return found


def _json(value: Any, status: int = HTTPStatus.OK) -> web.Response:
    return web.Response(body=to_json(value), status=status, content_type="application/json")
