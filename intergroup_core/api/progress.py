"""How far an application has come in a stream, as a cut from which another can go on."""

from __future__ import annotations

from intergroup_core.api.events import BatchEvent, Gap, Message, ViewChange
from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Service, View
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import view_of_text
from intergroup_core.log.standings import Passed


class Progress:
    """Follows what was handed to the application: whole messages, and views."""

    def __init__(self, service: Service, start: Cut | str | None = None) -> None:
        self._service = service
        self._cut: OrderCut | SourceCut | None = None
        self._passed = Passed(None, start.seqs if isinstance(start, SourceCut) else None)

    @property
    def cut(self) -> OrderCut | SourceCut | None:
        """Behind everything that was handed over; None before anything was, and in `uu`."""
        return self._cut

    def passed(self, event: BatchEvent | Message) -> None:
        """An event was handed over; of several records in a message the last."""
        if isinstance(event, Gap):
            self._passed.skip()
            return
        if self._service is Service.UU:
            return
        if isinstance(event, ViewChange):
            sender = MemberId(int(event.position.split("-")[1], 16))
            self._passed.enter(_install(event))
        else:
            sender = MemberId(int(event.sender_id, 16))
            self._passed.data(sender, event.seq)
        if self._service is Service.RTO:
            self._cut = OrderCut(event.lamport, sender, view_of_text(event.view_id))
        else:
            self._cut = self._passed.cut


def _install(event: ViewChange) -> Install:
    view = view_of_text(event.view_id)
    assert view is not None
    members = tuple(MemberId(int(peer.id, 16)) for peer in event.members)
    return Install(
        View(id=view, members=members),
        before=tuple((MemberId(int(member, 16)), seq) for member, seq in event.before),
    )
