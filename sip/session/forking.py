"""The early dialogs of an INVITE of ours: one for each fork that was heard of (RFC 3261 12.1.2, 13.2.2.1)."""

from enum import Enum

from sip.message.message import Request, Response
from sip.session.dialog import Dialog

__all__ = ["EarlyDialog", "Heard"]


class Heard(Enum):
    """What a reliable provisional response is to those before it."""

    NEXT = 0
    REPEATED = 1
    OUT_OF_ORDER = 2


class EarlyDialog:
    """
    One fork of our INVITE that rings.

    `settled` says that the offer of the INVITE, or the one the fork made, is answered for good; until then
    a session description only foretells the answer. `description` is the fork's latest one. The dialog
    itself is made when it is needed first: most forks ring and are answered, and no more.
    """

    __slots__ = (
        "_dialog",
        "_request",
        "_response",
        "acknowledged",
        "answer",
        "description",
        "pracking",
        "rack",
        "rseq",
        "settled",
        "tag",
    )

    def __init__(self, request: Request, response: Response, tag: str) -> None:
        self._request = request
        self._response = response
        self._dialog: Dialog | None = None
        self.tag = tag
        self.settled = False
        self.description = b""
        self.rseq: int | None = None
        self.rack = ""
        """The RAck of the latest PRACK, or of the one that is due."""
        self.answer = b""
        """The body of the latest PRACK."""
        self.pracking = False
        """Whether a PRACK is on its way."""
        self.acknowledged = False
        """Whether the latest PRACK was accepted."""

    @property
    def dialog(self) -> Dialog:
        """The early dialog."""
        if self._dialog is None:
            self._dialog = Dialog.from_response(self._request, self._response)
        return self._dialog

    def hear(self, response: Response) -> None:
        """Take what a further provisional response says of the dialog."""
        if self._dialog is None:
            self._response = response
        else:
            self._dialog.refresh_target(response)

    def receive(self, rseq: int) -> Heard:
        """
        Place a reliable response among those before it.

        Source: RFC 3262 4.
        """
        if self.rseq is not None:
            if rseq <= self.rseq:
                return Heard.REPEATED
            if rseq > self.rseq + 1:
                return Heard.OUT_OF_ORDER
        self.rseq = rseq
        self.acknowledged = False
        return Heard.NEXT

    def confirm(self, response: Response) -> tuple[Dialog, bytes]:
        """
        Make the dialog a confirmed one; and the description that holds in it.

        What a 2xx repeats of an answer that was given for good is ignored (RFC 3261 13.2.1).
        """
        dialog = self._dialog
        if dialog is None:
            dialog = Dialog.from_response(self._request, response)
        else:
            dialog.confirm(response)
        if self.settled:
            return dialog, dialog.description or self.description
        return dialog, response.body or self.description
