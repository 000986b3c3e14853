"""One run of a simulated application that writes: it stages rows at several sites and makes them visible together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from intergroup_core.ids import MemberId
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.transaction.committing import Ask, Committing, Done, Say, Void, Wait
from intergroup_core.transaction.transactions import Verdict
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.glance import labels_in
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.records import RecordBatch, Rows, pack_rows
from intergroup_core.wire.statements import Proposed

if TYPE_CHECKING:
    from intergroup_core.sim.transacting import Transacting

MILLISECOND = 1_000_000
LOOK_NS = 10 * MILLISECOND
ASK_NS = 60 * MILLISECOND
"""After which those who have not answered are asked again."""
MAX_ASKED = 8
"""Times after which it is looked whether another question is due."""
PATIENCE_NS = 1_500 * MILLISECOND
"""How long an attempt may take to stage its rows before another one is made."""
TIMEOUT_S = 600
SPECULATIVE = 0.25
"""Part of the tasks that are tried twice at once."""


class Phase(Enum):
    STAGING = "staging"
    COMMITTING = "committing"
    ENDED = "ended"


@dataclass(slots=True)
class Attempt:
    """One try at one task's rows, by a process at one site."""

    label: Label
    member: LiveMember
    sender: MemberId
    messages: int
    found: list[tuple[int, int]] = field(default_factory=list)

    @property
    def staged(self) -> Staged | None:
        if len(self.found) < self.messages:
            return None
        (first, begin), (last, end) = self.found[0], self.found[-1]
        return Staged(self.label.attempt, self.sender, first, last, begin, end, self.messages, self.messages)

    @property
    def failed(self) -> bool:
        return not self.member.alive or self.member.endpoint.me != self.sender


class Run:
    """Versions one after another, until somebody else takes over or its process is gone."""

    def __init__(
        self, group: Transacting, app: str, number: int, member: LiveMember, version: int, rng: Random, *, lasting: bool
    ) -> None:
        self.app, self.number, self.member, self.version = app, number, member, version
        self.phase = Phase.STAGING
        self.lasting = lasting
        self.stops_after: int | None = None
        """The last version that it is to write."""
        self._group = group
        self._name = f"{app}-{number}"
        self._rng = rng
        self._tasks: list[list[Attempt]] = []
        self._since = 0
        self._committing: Committing | None = None
        self._ask: Ask | None = None
        self._answers: set[int] = set()
        self._asked_at = 0
        self._times = 0

    @property
    def ended(self) -> bool:
        return self.phase is Phase.ENDED

    def start(self) -> None:
        self._begin_version()
        self._look()

    def stop(self) -> None:
        self.phase = Phase.ENDED

    def _begin_version(self) -> None:
        self.phase, self._committing, self._ask = Phase.STAGING, None, None
        self._tasks = [[] for _ in range(self._rng.choice((1, 1, 2)))]
        self._since = 0

    def _look(self) -> None:
        if self.ended:
            return
        if not self.member.alive:
            self.phase = Phase.ENDED
            return
        if not self.member.is_paused and self._group.knows(self.member):
            if self.phase is Phase.STAGING:
                self._stage()
            else:
                self._commit()
        self._group.scheduler.after(LOOK_NS + self._rng.randrange(LOOK_NS), self._look)

    # Staging

    def _stage(self) -> None:
        now = self._group.scheduler.now
        for task in self._tasks:
            task[:] = [attempt for attempt in task if not attempt.failed]
            if not task or (now - self._since > PATIENCE_NS and not any(attempt.staged for attempt in task)):
                self._since = now
                for _ in range(2 if self._rng.random() < SPECULATIVE else 1):
                    self._try(task)
        chosen = [[attempt.staged for attempt in task if attempt.staged is not None] for task in self._tasks]
        if all(chosen):
            self.phase = Phase.COMMITTING
            attempts = tuple(self._rng.choice(found) for found in chosen)
            wanted = Proposed(0, self.app, self._name, self.version, self.lasting, TIMEOUT_S, attempts)
            self._committing = Committing(wanted, lambda: self._rng.randrange(1, 1 << 60))
            self._group.reached("staged", self.member)

    def _try(self, task: list[Attempt]) -> None:
        member = self._group.executor(self._rng)
        if member is None:
            return
        label = Label(self.app, self._name, self.version, self._rng.randrange(1, 1 << 60), TIMEOUT_S)
        attempt = Attempt(label, member, member.endpoint.me, self._rng.choice((1, 1, 2)))
        values = RecordBatch(np.array([0, 3], dtype=np.int64), np.frombuffer(b"row", dtype=np.uint8))
        payload = pack_rows(Rows(values), encode_label(label))
        task.append(attempt)  # before: one that is alone delivers at once
        if not all(member.stage(payload, 1) for _ in range(attempt.messages)):
            task.remove(attempt)

    def delivered(self, member: LiveMember, chunk: Chunk) -> None:
        """A process finds what it staged in its own stream."""
        mine = [
            each
            for task in self._tasks
            for each in task
            if each.member is member and each.sender == chunk.source and each.staged is None
        ]
        for message in labels_in(chunk) if mine else ():
            for attempt in mine:
                if message.label.attempt == attempt.label.attempt:
                    attempt.found.append((message.seq, message.timestamp))

    # Committing

    def _commit(self) -> None:
        assert self._committing is not None
        ledger, me = self.member.endpoint.ledger, self.member.endpoint.me
        step = self._committing.next(ledger, me)
        match step:
            case Say(statement):
                if self.member.declare(statement):
                    self._group.reached(f"said {type(statement).__name__}", self.member)
                else:
                    self._committing.unsaid(ledger)
            case Ask():
                self._question(step)
            case Done():
                self._group.told(self)
                if self.stops_after is not None and self.version >= self.stops_after:
                    self.phase = Phase.ENDED
                else:
                    self.version += 1
                    self._begin_version()
            case Void(Verdict.SUPERSEDED):
                self.phase = Phase.ENDED
            case Void():
                self._begin_version()
            case Wait():
                pass

    def _question(self, ask: Ask) -> None:
        now = self._group.scheduler.now
        if self._ask is None or (ask.sender, ask.seq) != (self._ask.sender, self._ask.seq):
            self._answers = set()
            self._asked_at = self._times = 0
        self._ask = ask
        if ask.is_answered_by(self._answers):
            assert self._committing is not None
            self._committing.answered(ask, self._answers)
            self._answers = set()
        elif self._times == MAX_ASKED:
            assert self._committing is not None
            self._committing.answered(ask, self._answers)
            self._ask = None
        elif now - self._asked_at >= ASK_NS:
            self._asked_at = now
            self._times += 1
            self._group.question(self.member, (ask.sender, ask.seq), ask.sites, self._answered(ask))

    def _answered(self, ask: Ask) -> Callable[[int], None]:
        def answered(site: int) -> None:
            if self._ask is not None and (self._ask.sender, self._ask.seq) == (ask.sender, ask.seq):
                self._answers.add(site)

        return answered
