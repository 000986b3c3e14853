"""One order with transactions in it, the rows that who reads what is committed is to see, and readers of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from intergroup_core.api.events import position
from intergroup_core.client.fetching import Keeper
from intergroup_core.client.planning import Filled, PlanningClient
from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.ids import COUNTER_BITS, MemberId, Service, Timestamp
from intergroup_core.log.cut import Cut, OrderCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.places import Piece
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeSink, RangeSource
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.replay import follow
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import encode_label, key_of
from intergroup_core.wire.statements import (
    Decided,
    Established,
    Gathering,
    Holding,
    Proposed,
    Restated,
    Statement,
    encode_statement,
)
from pyspark_intergroup.group_planner import GroupPlanner
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.slice import AnySlice
from pyspark_intergroup.slicing import SliceSizes
from tests.builders import GROUP, START, A, B, C, a_frame, a_message, laid_out, packed
from tests.log_builders import a_label, an_install, chunk_of
from tests.unit.connector.replay_logs import BEFORE_ALL

WIDTH = 640
"""Bytes of the payload of a frame: any message but a long one fits."""
SITES = (1, 2, 3)
HOUR = 3_600
MEMBERS = (A, B, C)


class Seen(NamedTuple):
    """What matters of a row."""

    value: bytes
    txn: str | None
    lamport: int
    sent: int
    position: str


class _Message(NamedTuple):
    sender: MemberId
    seq: int
    timestamp: int
    values: Sequence[bytes]


class History:
    """Deliveries, and what a reader of committed rows sees of them."""

    def __init__(self) -> None:
        self.deliveries: list[Delivered] = [an_install(*MEMBERS, start=START, joined=MEMBERS)]
        self.expected: list[Seen] = []
        self.now = START
        self._seqs = dict.fromkeys(MEMBERS, 1)
        self._frames: list[bytes] = []
        self._sender = A
        self._attempts: dict[int, list[_Message]] = {}
        self._staged: dict[int, list[Staged]] = {}
        for site in SITES:
            self.say(Holding(site, f"s{site}", True, 86_400))
        asked = Ledger()
        asked.transactions.gather(self.say(Gathering(900)).timestamp)
        for member in MEMBERS:
            self.say(Restated(asked.to_bytes()), member)
        self.say(Gathering(901))
        self.say(Established(902, Timestamp(self.now), SITES))

    # What is sent

    def message(self, payload: bytes, sender: MemberId, values: Sequence[bytes], *, long: bool = False) -> _Message:
        """One more, in an entry with those before it where it can be."""
        if sender != self._sender or long:
            self.flush()
        self._sender = sender
        seq, self.now = self._seqs[sender], self.now + 1
        if long:
            frames = a_message(sender=sender, seq=seq, timestamp=self.now, payload=payload, body=64)
            self._seqs[sender], self.now = seq + len(frames), self.now + len(frames) - 1
            self.deliveries.append(chunk_of(frames))
            return _Message(sender, seq + len(frames) - 1, self.now, values)
        size = HEADER_BYTES + WIDTH
        self._frames.append(a_frame(sender=sender, seq=seq, timestamp=self.now, payload=payload, size=size))
        self._seqs[sender] += 1
        return _Message(sender, seq, self.now, values)

    def flush(self, microseconds: int = 1) -> None:
        """Nothing more in this entry; time goes on."""
        if self._frames:
            self.deliveries.append(chunk_of(self._frames))
            self._frames = []
        self.now += microseconds << COUNTER_BITS

    def plain(self, *values: bytes, sender: MemberId = A, long: bool = False) -> None:
        sent = self.message(packed(values), sender, values, long=long)
        self._see(sent, None, sent.timestamp, sender, sent.seq)

    def say(self, statement: Statement, sender: MemberId = A) -> _Message:
        payload = encode_statement(statement)
        return self.message(payload.slice(0, len(payload)).tobytes(), sender, ())

    def view(self, *members: MemberId) -> None:
        self.flush()
        self.deliveries.append(an_install(*members, start=self.now, seq=len(self.deliveries)))

    def stage(
        self,
        attempt: int,
        *values: bytes,
        app: str = "query",
        version: int = 0,
        sender: MemberId = A,
        long: bool = False,
        unsound: bool = False,
    ) -> None:
        """One message; an unsound one has its place in the transaction, and no rows."""
        first = self._seqs[sender]
        label = encode_label(a_label(app, version, attempt, run=f"run of {app}"))
        payload = laid_out(values, label=label) + b"!" * unsound
        sent = self.message(payload, sender, () if unsound else values, long=long)
        self._attempts.setdefault(attempt, []).append(sent)
        staged = Staged(attempt, sender, first, sent.seq, sent.timestamp, sent.timestamp, 1, len(values))
        earlier = self._staged.setdefault(attempt, [])
        if earlier and earlier[0].sender == sender:
            before = earlier.pop()
            staged = before._replace(
                last_seq=staged.last_seq,
                last_timestamp=staged.last_timestamp,
                messages=before.messages + 1,
                rows=before.rows + len(values),
            )
        earlier.append(staged)

    def propose(self, *attempts: int, app: str = "query", version: int = 0, sender: MemberId = B) -> _Message:
        staged = tuple(each for attempt in attempts for each in self._staged.get(attempt, []))
        return self.say(Proposed(1, app, f"run of {app}", version, True, HOUR, staged), sender)

    def decide(
        self, proposal: _Message, *attempts: int, app: str = "query", version: int = 0, sender: MemberId = C
    ) -> None:
        decided = Decided(2, key_of(app), version, proposal.sender, proposal.seq, Timestamp(proposal.timestamp), SITES)
        marker = self.say(decided, sender)
        messages = sorted(
            (each for attempt in attempts for each in self._attempts.get(attempt, [])),
            key=lambda each: (each.timestamp, each.sender),
        )
        for ordinal, each in enumerate(messages):
            self._see(each, f"{app}/{version}", marker.timestamp, marker.sender, ordinal)

    def _see(self, sent: _Message, txn: str | None, lamport: int, sender: int, number: int) -> None:
        for record, value in enumerate(sent.values):
            place = position(lamport, sender, number, record)
            self.expected.append(Seen(value, txn, lamport, sent.timestamp, place))

    @property
    def uncommitted(self) -> list[bytes]:
        """Every value where it lies; of a log that is complete."""
        self.flush()
        sent = [row for row in self.expected if row.txn is None]
        staged = [
            Seen(value, None, each.timestamp, each.timestamp, position(each.timestamp, each.sender, each.seq, record))
            for messages in self._attempts.values()
            for each in messages
            for record, value in enumerate(each.values)
        ]
        return [row.value for row in sorted([*sent, *staged], key=lambda row: row.position)]


def some_history(rng: Random, steps: int) -> History:
    """Interleaved transactions: some with an attempt that lost, some never decided, some decided much later."""
    history = History()
    opens: dict[tuple[str, int], list[int]] = {}
    proposed: dict[tuple[str, int], tuple[_Message, list[int]]] = {}
    versions = dict.fromkeys(("x", "y"), 0)
    for number in range(1, steps + 1):
        sender = rng.choice(MEMBERS)
        values = [b"%d" % (10 * number + at) for at in range(rng.randint(0, 3))]
        match rng.randrange(12):
            case 0 | 1 | 2:
                history.plain(*values, sender=sender, long=rng.random() < 0.2)
            case 3:
                history.flush(rng.choice((0, 0, 1, 50)))
            case 4 | 5 | 6 | 7:
                app = rng.choice(("x", "y"))
                key = app, versions[app] + (app in {name for name, _ in proposed})
                attempts = opens.setdefault(key, [])
                if not attempts or rng.random() < 0.3:
                    attempts.append(1_000 + number)
                # An attempt is one task's, and sends through one member.
                attempt = rng.choice(attempts)
                history.stage(
                    attempt,
                    *values,
                    app=app,
                    version=key[1],
                    sender=MEMBERS[attempt % 3],
                    long=rng.random() < 0.2,
                    unsound=rng.random() < 0.1,
                )
            case 8 | 9:
                waiting = [key for key in opens if key[0] not in {name for name, _ in proposed} and opens[key]]
                if waiting:
                    app, version = min(waiting, key=lambda key: key[1])
                    attempts = opens.pop((app, version))
                    counted = [each for each in attempts if rng.random() < 0.8]
                    proposal = history.propose(*counted, app=app, version=version, sender=sender)
                    proposed[app, version] = proposal, counted
            case 10:
                if proposed:
                    app, version = next(iter(proposed))
                    proposal, counted = proposed.pop((app, version))
                    history.decide(proposal, *counted, app=app, version=version, sender=sender)
                    versions[app] = version + 1
            case 11 if rng.random() < 0.3:
                history.view(*MEMBERS)
    history.flush()
    return history


def stored(
    directory: Path,
    deliveries: Iterable[Delivered],
    *,
    log: int = 1,
    after: Cut | None = BEFORE_ALL,
    segment: int = 4_000,
) -> FileDisk:
    """A log whose segments say what was stated before them."""
    disk = FileDisk.locked(directory)
    create_log(disk, log=log, group=GROUP, service=Service.RTO, after=after)
    writer = open_log(disk, segment_bytes=segment, stated=Ledger())
    for delivered in deliveries:
        writer.append(delivered)
    writer.close()
    disk.close()
    return FileDisk(directory)


def parted(directory: Path, deliveries: Sequence[Delivered], at: int) -> list[FileDisk]:
    """The same order in two logs, as of a site whose member began anew in the midst of it."""
    first = stored(directory / "1", deliveries[:at])
    reader, ledger = LogReader(first), Ledger()
    for entry in reader.entries(0):
        follow(ledger, Piece(entry, 0, entry.header.messages))
    install = reader.install_before(reader.stop)
    assert install is not None
    disk = FileDisk.locked(directory / "2")
    create_log(disk, log=2, group=GROUP, service=Service.RTO, after=reader.head())
    writer = open_log(disk, segment_bytes=4_000, stated=Ledger())
    writer.carry(replace(install, ledger=ledger.checkpoint()))
    for delivered in deliveries[at:]:
        writer.append(delivered)
    writer.close()
    disk.close()
    return [first, FileDisk(directory / "2")]


class SitePlanner(GroupPlanner):
    """One that reads logs as they lie, and asks nobody but those it is told of."""

    def __init__(self, disks: list[FileDisk], *, fail_on_data_loss: bool = True, agent: Agent | None = None) -> None:
        super().__init__(
            GROUP,
            Service.RTO,
            Config.lan(),
            home=None,
            level="stable",
            fail_on_data_loss=fail_on_data_loss,
            fetch_timeout_s=0.1,
            committed=True,
        )
        self.disks = disks
        self._asked = agent

    def _connected(self) -> PlanningClient:
        return self._asked  # type: ignore[return-value]

    def logs(self) -> StreamReader:
        if self._reader is None:
            self._reader = StreamReader(self.disks)
        else:
            self._reader.refresh(self.disks)
        return self._reader

    def keepers(self) -> list[Keeper]:
        return []

    @property
    def whole(self) -> tuple[OrderCut, OrderCut]:
        first, head = self.logs().first(), self.logs().head()
        assert isinstance(first, OrderCut)
        assert isinstance(head, OrderCut)
        return first, head

    def batches(self, limits: Limits, sizes: SliceSizes | None = None) -> Iterator[list[AnySlice]]:
        """All that is there, batch by batch."""
        at, stop = self.whole
        while at != stop:
            end = self.end(at, stop, limits)
            assert isinstance(end, OrderCut)
            assert end != at, "a batch always progresses"
            yield self.slices(at, end, sizes or SliceSizes())
            at = end


class Agent:
    """One that gets what it is asked for from another site's log, where there is one, and remembers what it is told."""

    def __init__(self, directory: Path, disks: list[FileDisk], source: FileDisk | None = None) -> None:
        self.part = Path(disks[-1].where)
        self.held: list[int] = []
        self.committed: list[Cut] = []
        self._directory = directory
        self._disks = disks
        self._source = source

    def fill(self, start: Cut, stop: Cut, timeout: float) -> Filled:
        if self._source is None:
            return Filled(False, {"elsewhere": "it does not have it"})
        assert isinstance(start, OrderCut)
        assert isinstance(stop, OrderCut)
        number = 100 + len(self._disks)
        disk = FileDisk.locked(self._directory / str(number))
        create_log(disk, log=number, group=GROUP, service=Service.RTO, after=start)
        sink = RangeSink(open_log(disk), start, stop)
        for block in RangeSource(StreamReader([self._source]), start, stop):
            sink.take(block)
        sink.keep()
        disk.close()
        self._disks.append(FileDisk(self._directory / str(number)))
        return Filled(True, {})

    def hold(self, entry: int, timeout: float) -> None:
        self.held.append(entry)

    def commit(self, subscription: str, cut: Cut, timeout: float) -> None:
        self.committed.append(cut)
