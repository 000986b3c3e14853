"""How far an application has come in a stream, as a cut from which another can go on."""

from __future__ import annotations

from intergroup_core.api.events import BatchEvent, Gap, Message, ViewChange
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import OrderCut, SourceCut
from intergroup_core.log.cut_codec import view_of_text


class Progress:
    """Follows what was handed to the application: whole messages, and views."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._cut: OrderCut | SourceCut | None = None
        self._seqs: dict[MemberId, int] = {}

    @property
    def cut(self) -> OrderCut | SourceCut | None:
        """Behind everything that was handed over; None before anything was, and in `uu`."""
        return self._cut

    def passed(self, event: BatchEvent | Message) -> None:
        """An event was handed over; of several records in a message the last."""
        if isinstance(event, Gap) or self._service is Service.UU:
            return
        view = view_of_text(event.view_id)
        if isinstance(event, ViewChange):
            sender = MemberId(int(event.position.split("-")[1], 16))
        else:
            sender = MemberId(int(event.sender_id, 16))
            self._seqs[sender] = event.seq
        if self._service is Service.RTO:
            self._cut = OrderCut(event.lamport, sender, view)
        else:
            self._cut = SourceCut(dict(self._seqs), view)
