"""
The calls of a process: the one door for the API above and for SIP below.

``CallControl`` owns the SIP user agent, the media engine and every call's task.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from callcontrol.aio.audio_source import AudioSource
from callcontrol.aio.call_runner import CallRunner
from callcontrol.aio.context import CallContext
from callcontrol.aio.media_engine import Engine
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.aio.trace import TraceBook, TraceEntry
from callcontrol.call import CallMachine, initial_reserve_paise
from callcontrol.call_events import call_event
from callcontrol.capacity import Capacity
from callcontrol.clock import WallClock
from callcontrol.errors import CallEnded, DomainError, NotFound, ServiceUnavailable
from callcontrol.events import HangupRequested
from callcontrol.hangup import CRASH, SYSTEM_SHUTDOWN
from callcontrol.inbound import Arrival, Invitation, receive
from callcontrol.interfaces import CallRecords, Destinations, Numbers, Routes, Wallets
from callcontrol.meter import Rates
from callcontrol.models import Account, CallFilter, CallRecord, CallStatus, Page
from callcontrol.plan import DEFAULT_TIME_LIMIT_S, Plan
from callcontrol.reconcile import close_record
from callcontrol.requests import CreateCall, plan_of
from callcontrol.router import Router
from media.aio import EngineSettings, MediaEngine
from media.audio import PromptLibrary
from sip import Request
from sip.aio import InboundSession, Listen, ScreenVerdict, UserAgent, UserAgentSettings

__all__ = ["CallControl", "CallControlSettings", "CallServices", "TraceEntry"]

log = logging.getLogger(__name__)

_SHUTDOWN_LIMIT_S: Final = 5.0
