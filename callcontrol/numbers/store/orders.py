"""Orders of phone numbers; states change only by the rules of ``callcontrol.numbers.orders``."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.tables.orders import number_orders
from callcontrol.database.values import to_micros, to_moment
from callcontrol.numbers.orders import RULES, Order, OrderEvent, OrderState
from sip.machine import next_state

_OPEN = number_orders.c.state.in_(["pending", "releasing"])


def insert(connection: Connection, order: Order) -> None:
    """Write a new order."""
    connection.execute(
        sa.insert(number_orders).values(
            order_id=order.order_id,
            account_sid=order.account_sid,
            live_ref=order.live_ref,
            number=order.number,
            state=_name(order.state),
            months=order.months,
            total_paise=order.total_paise,
            phone_number_id=order.phone_number_id,
            created_at=to_micros(order.created_at),
            updated_at=to_micros(order.updated_at),
        )
    )


def get(connection: Connection, order_id: str, *, lock: bool = False) -> Order | None:
    """Get an order; ``lock`` keeps other writers from it until the transaction ends."""
    wanted = sa.select(number_orders).where(number_orders.c.order_id == order_id)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return _order(row) if row is not None else None


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
    values: dict[str, Any] = {"state": _name(state), "updated_at": to_micros(now)}
    if phone_number_id is not None:
        values["phone_number_id"] = phone_number_id
    connection.execute(sa.update(number_orders).where(number_orders.c.order_id == order_id).values(values))
    return True


def open_orders(connection: Connection) -> list[Order]:
    """Orders that are pending or releasing, oldest first."""
    rows = connection.execute(sa.select(number_orders).where(_OPEN).order_by(number_orders.c.created_at))
    return [_order(row) for row in rows]


def _name(state: OrderState) -> str:
    return state.name.lower()


def _order(row: Row[Any]) -> Order:
    return Order(
        order_id=row.order_id,
        account_sid=row.account_sid,
        live_ref=row.live_ref,
        number=row.number,
        months=row.months,
        total_paise=row.total_paise,
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
        state=OrderState[row.state.upper()],
        phone_number_id=row.phone_number_id,
    )
