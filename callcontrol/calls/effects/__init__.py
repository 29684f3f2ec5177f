"""
Effects of the call machine, performed by ``callcontrol.calls.aio`` in the order given.

An effect that fails results in an event (``LegRefused``, ``RouteRefused``, ``AgentRefused``, ...); none
returns a value.
"""


class Effect:
    """Base class of effects."""

    __slots__ = ()
