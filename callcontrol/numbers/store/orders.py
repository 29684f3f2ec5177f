"""Orders of phone numbers; states change only by the rules of ``callcontrol.numbers.orders``."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import Codec, ValueTable
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.orders import number_orders
from callcontrol.numbers.orders import RULES, Order, OrderEvent, OrderState
from sip.machine import next_state

_STATE: Final = Codec(lambda state: state.name.lower(), lambda name: OrderState[name.upper()])
_ORDERS: Final = ValueTable(
    number_orders, Order, order=(number_orders.c.created_at,), codecs={"state": _STATE}
)
_OPEN: Final = number_orders.c.state.in_(["pending", "releasing"])

insert, get = _ORDERS.insert, _ORDERS.get


def advance(
    connection: Connection,
    order_id: str,
    event: OrderEvent,
    now: datetime,
    *,
    phone_number_id: str | None = None,
) -> bool:
    """Apply an event to an order; returns True if its state has a rule for the event."""
    order = get(connection, order_id, lock=True)
    state = None if order is None else next_state(RULES, order.state, event)
    if state is None:
        return False
    values: dict[str, Any] = {"state": _STATE.encode(state), "updated_at": to_micros(now)}
    if phone_number_id is not None:
        values["phone_number_id"] = phone_number_id
    connection.execute(sa.update(number_orders).where(number_orders.c.order_id == order_id).values(values))
    return True


def open_orders(connection: Connection) -> list[Order]:
    """Orders that are pending or releasing, oldest first."""
    return _ORDERS.all(connection, _OPEN)


def is_returning(connection: Connection, number: str) -> bool:
    """Return True if a number is only on its way back to the supplier: no order that may get it is open."""
    found = _ORDERS.all(connection, number_orders.c.number == number, _OPEN)
    return {order.state for order in found} == {OrderState.RELEASING}
