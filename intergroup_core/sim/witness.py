"""One process of a simulated site with a log: what it has kept, what its site remembers, what a reader would see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random

from intergroup_core.agent.held import Held, Spans
from intergroup_core.effects import Deliver, Effect, Gap, Install
from intergroup_core.ids import MemberId
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.transaction_trace import (
    Begun,
    Counts,
    Met,
    Place,
    Proposal,
    Replayed,
    Stood,
    TransactionTrace,
    Version,
    Visible,
)
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Decision, is_repair
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.glance import labels_in
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Proposed, statements_in

RETRY_NS = 10_000_000
"""After which a disk tries again for a process that stood still."""
FAR = 1 << 40


class Witness:
    """Follows a process; whatever it says that it holds, its site remembers first."""

    def __init__(
        self,
        cluster: LiveCluster,
        member: LiveMember,
        trace: TransactionTrace,
        apps: dict[bytes, str],
        rng: Random,
        *,
        key: int,
        log_ns: int,
        older: Sequence[Spans],
    ) -> None:
        self.member = member
        self.key = key
        self._cluster = cluster
        self._trace = trace
        self._apps = apps
        self._rng = rng
        self._log_ns = log_ns
        self._held = Held()
        self._held.older = list(older)
        self._held.withheld = lambda: bool(member.endpoint.ledger.unstated)
        self._sources: set[MemberId] = set()
        self._broken = False
        """Whether the log has a gap or views that met, so that it proves nothing once it does not grow any more."""
        self._entries = 0
        self._kept_at = 0
        self.reader = Ledger()
        """Of one who reads the log from its beginning."""
        self._second: Ledger | None = None
        """Of one who began at a checkpoint in the midst of it."""
        self._shown: list[tuple[int, Place]] = []
        self._seen: list[tuple[int, Place]] = []
        self._view = ""
        self._stream = member.endpoint.me
        member.watch = self.watch

    # What is delivered

    def watch(self, effects: Sequence[Effect]) -> None:
        before, stated = self._entries, self.reader.version
        repaired = max(
            (at for at, effect in enumerate(effects) if isinstance(effect, Install) and is_repair(effect)), default=-1
        )
        for at, effect in enumerate(effects):
            if isinstance(effect, Deliver):
                self._append(effect.chunk)
                # What ends a view may lack what others have of senders that are gone.
                self._delivered(effect.chunk, ending=at < repaired)
            elif isinstance(effect, Install):
                self._append(effect)
                self._entered(effect)
            elif isinstance(effect, Gap):
                self._append(effect)
                self.end(compared=False)
                self._stream, self._view = effect.incarnation, ""
                self._broken = True
        compared = self.reader.version != stated and not any(isinstance(effect, Gap) for effect in effects)
        if compared and self.reader.to_bytes() != self.member.endpoint.ledger.to_bytes():
            self.end()
        if self._entries > before:
            now = self._cluster.scheduler.now
            self._kept_at = max(now, self._kept_at) + self._rng.randrange(self._log_ns + 1)
            self._cluster.scheduler.at(self._kept_at, self._keep, self._entries)

    def _append(self, event: Chunk | Install | Gap) -> None:
        self._held.appended(self._entries, event)
        self._entries += 1

    def _entered(self, install: Install) -> None:
        now, me = self._cluster.scheduler.now, self._stream
        self.reader.enter(install)
        if self._second is not None:
            self._second.enter(install)
        begins, self._view = not self._view, str(install.view.id)
        if begins:
            beginning = self.member.endpoint.beginning
            start = beginning.position if beginning is not None else install.view.id.start
            self._trace.events.append(Begun(now, me, int(start)))
            self._trace.rows[me] = {}
        if install.branches:
            self._broken = True
            self._trace.events.append(Met(now, me, int(install.view.id.start)))

    def _delivered(self, chunk: Chunk, *, ending: bool) -> None:
        now, me = self._cluster.scheduler.now, self._stream
        self._sources.add(chunk.source)
        for staged in labels_in(chunk):
            self._trace.rows[me][chunk.source, staged.seq] = len(self._trace.events)
        stated = list(statements_in(chunk))
        counted = self.reader.transactions.established
        decisions = self.reader.deliver(chunk)
        for message, statement in stated:
            if isinstance(statement, Proposed):
                self._trace.events.append(
                    Proposal(
                        now,
                        me,
                        (message.source, message.seq),
                        message.timestamp,
                        (statement.app, statement.version),
                        tuple(
                            (MemberId(each.sender), each.first_seq, each.last_seq, each.first_timestamp)
                            for each in statement.attempts
                        ),
                        self._is_pending(statement, message.source, message.seq),
                    )
                )
        for decision in decisions:
            self._trace.events.append(Visible(now, me, decision.proposal[:2], decision.timestamp, decision.sender))
        self._shown += map(_brief, decisions)
        if self._second is not None:
            self._seen += map(_brief, self._second.deliver(chunk))
        known = self.reader.transactions
        if stated and known.established:
            digest = int.from_bytes(hashlib.blake2b(self.reader.to_bytes(), digest_size=7).digest())
            place = chunk.run.timestamp + chunk.run.ends[-1]
            if not ending:
                self._trace.events.append(Stood(now, me, self._view, place, chunk.source, digest))
            if not counted:
                self._counts()
        if stated and self._second is None and self._rng.random() < 0.02:
            self._second = Ledger()
            self._second.begin(self.reader.checkpoint(), FAR << 30)
            self._second.transactions.members = known.members
            self._shown, self._seen = [], []

    def _is_pending(self, statement: Proposed, sender: MemberId, seq: int) -> bool:
        application = self.reader.transactions.applications.get(key_of(statement.app))
        pending = application.pending if application is not None else None
        return pending is not None and (pending.proposer, pending.seq) == (sender, seq)

    def _counts(self) -> None:
        known = self.reader.transactions
        candidates = frozenset((pending.proposer, pending.seq) for _, pending in known.pending())
        self._trace.events.append(
            Counts(self._cluster.scheduler.now, self._stream, known.era, self._committed(), candidates)
        )

    def _committed(self) -> frozenset[Version]:
        known = self.reader.transactions
        found = {(self._apps[key], app.version) for key, app in known.applications.items() if key in self._apps}
        return frozenset(found | {(self._apps[key], version) for key, version in known.recent if key in self._apps})

    def end(self, *, compared: bool = True) -> None:
        """Here, or because the stream ends: whoever read it, from wherever, knows what its member knew."""
        live = self.member.endpoint.ledger.to_bytes() if compared else self.reader.to_bytes()
        readers = [(self.reader, self._shown)] + ([(self._second, self._seen)] if self._second is not None else [])
        for reader, seen in readers if self._view else ():
            self._trace.events.append(
                Replayed(
                    self._cluster.scheduler.now, self._stream, reader.to_bytes(), live, tuple(seen), tuple(self._shown)
                )
            )
        if self.reader.transactions.established:
            self._counts()
        self._second = None
        self._shown, self._seen = [], []

    # What is kept

    def _keep(self, stop: int) -> None:
        if not self.member.alive:
            return
        if self.member.is_paused:
            self._cluster.scheduler.after(RETRY_NS, self._keep, stop)
            return
        self._cluster.ledgers[self.member.name] = self.member.endpoint.ledger.remembered()
        self._held.kept(stop)

    def has(self, place: Place) -> bool:
        """Whether this site says that it has a message."""
        if not self.member.alive or self.member.is_paused:
            return False
        span = (*place, place[1])
        return self._held.within([span]) == (span,)

    def spans(self) -> list[Spans]:
        """What the log, and those before it, prove once the process is gone."""
        if self._broken:
            return list(self._held.older)
        held = self._held.within((source, 1, FAR) for source in self._sources)
        return [*self._held.older, {source: (first, last) for source, first, last in held}]


def _brief(decision: Decision) -> tuple[int, Place]:
    return decision.timestamp, decision.proposal[:2]
