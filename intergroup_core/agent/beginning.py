"""Where the log of a member begins in the order, and what is said of that."""

from __future__ import annotations

from collections.abc import Collection

from intergroup_core.effects import Install
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import BEHIND_ALL, OrderCut, SourceCut
from intergroup_core.log.part import cut_timestamp
from intergroup_core.log.writer import LogWriter


class LogBeginning:
    """Who comes into the midst of a view has nothing of what was before; who begins a group may go on with its log."""

    def __init__(self, service: Service, writer: LogWriter) -> None:
        self._service = service
        self._writer = writer
        self._install: Install | None = None
        self._alone = self._continued = False
        self.behind: OrderCut | None = None
        """What the log begins behind, where that is in the midst of a view."""
        self.seqs: SourceCut | None = None
        """What senders had sent before the log begins; it says nothing of those that were gone by then."""

    def begins(self, install: Install, endpoint: Endpoint, own: Collection[MemberId]) -> OrderCut | None:
        """The first view is there: what the log begins behind, None where it begins with the view.

        `own` are the members of this site, of which those with a name of their own have no log but this one.
        """
        self._install = install
        beginning = endpoint.beginning
        if beginning is not None:
            seqs = {source: first - 1 for source, first in beginning.activations.items()}
            self.seqs = SourceCut(seqs, install.view.id)
            if self._service is Service.RSO:
                self._writer.bound(missing=self.seqs)  # until it is known of all senders there were
        if beginning is None or install.view.id.start >= beginning.position:
            sent_before = self.seqs is not None and any(self.seqs.seqs.values())
            members = set(install.view.members)
            self._alone = bool(members) and members <= {endpoint.me, *own} and not sent_before
            if self._service is Service.RTO:
                self._writer.bound(after=OrderCut(install.view.id.start - 1, BEHIND_ALL), sources=self.seqs)
            return None
        if self._service is Service.RTO:
            self._writer.bound(sources=self.seqs)  # by it others can tell what of a sender lies in the log
        self.behind = OrderCut(beginning.position, BEHIND_ALL, install.view.id)
        return self.behind

    def continues(self, cut: OrderCut | SourceCut) -> bool:
        """Say that the log goes on from where an older one ends, where its site began the group anew and alone."""
        if self._install is None or self._continued or self._writer.busy or self._writer.manifest.first:
            return False
        if not self._alone or self._install.view.id.start <= cut_timestamp(cut):
            return False
        self._writer.bound(after=cut)
        self._continued = True
        return True

    def follows(self, cut: SourceCut) -> None:
        """Say behind what the log begins, once that is known of all senders there were, if it still begins there."""
        manifest = self._writer.manifest
        if manifest.after is None and not manifest.first and not self._writer.busy:
            self._writer.bound(after=cut)
