"""The wallet, which the specification has no endpoint of."""

from __future__ import annotations

from tests.contract.cases import ok, refused, row, unseen
from tests.contract.givens import bought_by_the_buyer, nothing
from tests.contract.stage import Answer, Stage


async def _adds_up(stage: Stage, answer: Answer) -> None:
    wallet = await stage.data("GET", "/v1/wallet", by="buyer")
    assert {"number_purchase", "top_up"} <= {entry["kind"] for entry in answer.data}
    assert answer.meta["total"] == len(answer.data)
    assert round(sum(entry["amount"] for entry in answer.data), 2) == wallet["balance"]


async def _has_what_was_paid_in(stage: Stage, answer: Answer) -> None:
    assert answer.data["account_sid"] == stage.own.account_sid
    assert 0 < answer.data["available"] == round(answer.data["balance"] - answer.data["reserved"], 2)


async def _is_empty(stage: Stage, answer: Answer) -> None:
    assert answer.data["account_sid"] == stage.accounts["poor"].account_sid
    assert (answer.data["balance"], answer.data["available"]) == (0, 0)


CASES = (
    *row(
        "GET /v1/wallet",
        ok(then=_has_what_was_paid_in),
        ok(name="a parameter that is not known", query={"colour": "red"}, then=_has_what_was_paid_in),
        unseen(by="poor", then=_is_empty),
    ),
    *row(
        "GET /v1/wallet/ledger",
        ok(by="buyer", before=(bought_by_the_buyer,), query={"per_page": "100"}, then=_adds_up),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"kind": "Money!", "page": "0", "colour": "red"},
            fields=("kind", "page"),
        ),
        refused(400, "VALIDATION_ERROR", name="no cursor", query={"cursor": "mine"}, fields=("cursor",)),
        unseen(by="poor", then=nothing),
    ),
)
