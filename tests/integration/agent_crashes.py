"""Kills the agent of a site under load and holds what comes after to what was acknowledged and read before.

python -m tests.integration.agent_crashes --first 0 --seeds 50
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import intergroup_core as ig
from intergroup_core.errors import IntergroupError
from intergroup_core.ids import MemberId, Service, Timestamp, ViewId
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.stream_store import StreamStore
from tests.integration.agents import logs_of, opened, read_until, records_in, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.seeds import Story, play_seeds
from tests.integration.sites import Sites, sites

MOST_BATCHES = 12
MOST_RECORDS = 40
MOST_DELAY_SECONDS = 0.02
"""Into a batch, at the latest, the agent is killed."""
DURABLE = loopback(membership={"bootstrap_wait_ms": 250, "linger_ms": 60}, log={"durability": "disk"})
ROW = ("kind", "sender", "sender_id", "seq", "record", "position", "lamport", "view_id", "value")
"""What is the same in every reading of a row."""


def cut_behind(row: ig.Message) -> OrderCut:
    start, leader, seq = (int(part, 16) for part in str(row.view_id).split("-"))
    view = ViewId(Timestamp(start), MemberId(leader), seq)
    return OrderCut(row.lamport, MemberId(int(row.sender_id, 16)), view)


def stream_at(home: Path, group: str) -> StreamReader:
    return StreamReader(StreamStore(home / "logs").parts(group, Service.RTO))


def rows_between(home: Path, group: str, start: OrderCut, stop: OrderCut) -> list[tuple[Any, ...]]:
    """Data rows that a site's own logs hold between two cuts; RangeUnavailable where something is missing."""
    return [
        tuple(row[column] for column in ROW)
        for found in stream_at(home, group).ranges(start, stop)
        for batch in ArrowRows(found.reader, ROW).batches(found.start, found.stop)
        for row in batch.to_pylist()
        if row["kind"] == "data"
    ]


def as_row(event: ig.Message) -> tuple[Any, ...]:
    return tuple(getattr(event, column) for column in ROW)


@dataclass
class Recorded:
    """What a client knew before the agent was killed."""

    acknowledged: int = 0
    """Records, numbered from 0."""
    sent: int = 0
    read: list[ig.Message] = field(default_factory=list)

    def ranges(self) -> list[tuple[OrderCut, OrderCut, list[tuple[Any, ...]]]]:
        """Cuts that were behind something read, and what was read between them."""
        # All records of a message lie before the cut behind it.
        ends = [at for at, (one, next_one) in enumerate(pairwise(self.read)) if one.seq != next_one.seq]
        chosen = ends[:: max(1, len(ends) // 4)]
        return [
            (cut_behind(self.read[first]), cut_behind(self.read[last]), [*map(as_row, self.read[first + 1 : last + 1])])
            for at, first in enumerate(chosen)
            for last in chosen[at + 1 :]
        ]


class Crash:
    """One seed: a group of two sites, of which one stays."""

    def __init__(self, there: Sites, seed: int) -> None:
        self._rng = Random(seed)
        self._group = a_group_name()
        self._a, self._b = there.home("a"), there.home("b")
        self._recorded = Recorded()

    def run(self) -> str:
        with opened(self._group, self._b, config=DURABLE, sender=True, name="bert") as bert:
            self._lead_up_to_death(bert)
            with opened(self._group, self._a, config=DURABLE, sender=True, name="anna", start="earliest") as anna:
                # One that nobody answers in time begins alone, and what it sends before they meet is its own branch's.
                until(lambda: {peer.name for peer in anna.members().senders} == {"anna", "bert"})
                anna.send(b"afterwards", ack="delivered")
                here = read_until(anna, _is_last)
                there = read_until(bert, _is_last)
            self._check(here, there)
        known = self._recorded
        found = sum(isinstance(event, ig.Message) for event in here) - 1
        return f"{known.acknowledged} of {known.sent} acknowledged, {found} there, {len(known.ranges())} ranges"

    def _lead_up_to_death(self, bert: ig.BlockingMember) -> None:
        known = self._recorded
        anna = opened(self._group, self._a, config=DURABLE, sender=True, name="anna")
        bert.joined(PATIENCE_SECONDS)
        pid = status_of(self._a)["pid"]
        for _ in range(self._rng.randint(1, MOST_BATCHES)):
            self._send_batch(anna)
            known.acknowledged = known.sent
            read = read_until(anna, lambda event: getattr(event, "value", None) == b"%d" % (known.sent - 1))
            known.read += [event for event in read if isinstance(event, ig.Message)]
        if self._rng.random() < 0.3:
            os.kill(pid, signal.SIGKILL)
        else:
            death = threading.Timer(self._rng.uniform(0, MOST_DELAY_SECONDS), os.kill, (pid, signal.SIGKILL))
            death.start()
            with suppress(IntergroupError):
                while True:
                    self._send_batch(anna)
                    known.acknowledged = known.sent
            death.join()
        with suppress(IntergroupError):
            anna.close()

    def _send_batch(self, anna: ig.BlockingMember) -> None:
        known = self._recorded
        count = self._rng.randint(1, MOST_RECORDS)
        records = [b"%d" % number for number in range(known.sent, known.sent + count)]
        known.sent += count
        anna.send_many(records, ack="delivered")

    def _check(self, here: list[Any], there: list[Any]) -> None:
        known = self._recorded
        for log in logs_of(self._a):
            records_in(log)
        rows = [as_row(event) for event in here if isinstance(event, ig.Message)]
        values = [row[-1] for row in rows]
        found = len(values) - 1
        assert values == [*(b"%d" % number for number in range(found)), b"afterwards"], values
        assert known.acknowledged <= found <= known.sent, (known.acknowledged, found, known.sent)
        assert rows == [as_row(event) for event in there if isinstance(event, ig.Message)]
        views = [event.view_id for event in there if isinstance(event, ig.ViewChange)]
        assert [event.view_id for event in here if isinstance(event, ig.ViewChange)][-len(views) :] == views
        assert not [event for event in here if isinstance(event, ig.Gap)]
        for start, stop, wanted in known.ranges():
            for home in (self._a, self._b):
                assert rows_between(home, self._group, start, stop) == wanted, (home, str(start), str(stop))


def _is_last(event: Any) -> bool:
    return getattr(event, "value", None) == b"afterwards"


@contextmanager
def crashes() -> Iterator[Story]:
    with sites() as there:
        yield lambda seed: Crash(there, seed).run()


def main(arguments: Sequence[str] | None = None) -> int:
    program = "tests.integration.agent_crashes"
    return play_seeds(program, "Kill agents under load.", crashes, arguments, seeds=50)


if __name__ == "__main__":
    sys.exit(main())
