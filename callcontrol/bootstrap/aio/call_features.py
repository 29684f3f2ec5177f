"""Features that calls use: products and steps, and requests for instructions to customers' servers."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from callcontrol.aio.tokens import utc_now
from callcontrol.assistant.aio.call_requests import CallRequests
from callcontrol.bootstrap.products import PRODUCTS, STEPS
from callcontrol.calls.aio.context import ActiveCall, CallControlSettings, CallFeatures
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.steps.send_message import SendChatMessage
from callcontrol.directory.directory import Directory
from callcontrol.egress.url_policy import Destinations
from callcontrol.instructions.aio import InstructionClient
from callcontrol.instructions.verbs import VerbRules
from callcontrol.masking.aio.routing import MaskedRouter
from callcontrol.masking.calls import PRODUCT as MASKED
from callcontrol.masking.steps.route_by_caller import RouteCaller
from callcontrol.tools.aio.call_messages import CallMessages
from media.audio import PromptLibrary

__all__ = ["call_features", "secrets_now", "verb_rules_of"]


def secrets_now(directory: Directory, account_sid: str) -> tuple[str, ...]:
    """Return the webhook secrets of an account that are valid now, the current one first."""
    return directory.secrets_of(account_sid, utc_now())


def verb_rules_of(settings: CallControlSettings, destinations: Destinations) -> VerbRules:
    """Rules for the verbs of all accounts on a server with these settings."""
    prompts = PromptLibrary(settings.prompts_dir).names() if settings.prompts_dir is not None else ()
    return VerbRules(settings.allowed_countries, frozenset(prompts), destinations.check_url)


def call_features(
    settings: CallControlSettings,
    routes: Directory,
    destinations: Destinations,
    refresh: Callable[[], Awaitable[None]],
    masked_routes: MaskedRouter | None = None,
    messages: CallMessages | None = None,
) -> CallFeatures:
    """
    Build the features that calls with these settings use.

    No masked number is called without ``masked_routes``, and no verb sends a message without ``messages``.
    """
    rules = verb_rules_of(settings, destinations)
    instructions = InstructionClient(destinations, rules, partial(secrets_now, routes))
    effects: dict[type[Effect], Callable[[ActiveCall, Any], None]] = {
        AskWebhook: instructions.request,
        StopAsking: instructions.stop,
    }
    prepare = {}
    if masked_routes is not None:
        effects[RouteCaller] = masked_routes.perform
        prepare[MASKED] = masked_routes.prepare
    if messages is not None:
        effects[SendChatMessage] = messages.perform
    requests = CallRequests(routes, refresh, rules)
    return CallFeatures(
        products=PRODUCTS,
        steps=STEPS,
        plan_request=requests.plan,
        read_verbs=requests.read_verbs,
        effects=effects,
        prepare=prepare,
        close=instructions.close,
    )
