"""Reliable timestamp ordered delivery: one order for the whole group (T4.8, D2, D3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from intergroup_core.counters import Counters
from intergroup_core.delivery.assembly import Assembly
from intergroup_core.ids import MAX_TIMESTAMP, MemberId
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class _Source:
    __slots__ = ("activation", "assembly", "by_keepalive", "delivered_seq", "id", "promise", "queue", "returns")

    def __init__(self, source: MemberId, promise: int, activation: int) -> None:
        self.id = source
        self.promise = promise
        self.by_keepalive = False
        self.delivered_seq = activation - 1
        """Of its last frame that was delivered."""
        self.activation = activation
        self.returns: list[int] = []
        """Timestamps at which it is added again, where those are known before its departure was delivered."""
        self.assembly = Assembly()
        self.queue: deque[Chunk] = deque()

    def lowest_undelivered(self) -> int | None:
        """Timestamp of the first frame that is here and not delivered."""
        return self.queue[0].start_timestamp if self.queue else self.assembly.start_timestamp


class ReliableTimestampOrdered:
    """A queue and a promise per source; the least complete message goes when no source can still undercut it.

    A member's own promise to itself is unbounded: its clock has seen everything it delivers, so whatever it
    sends later is above. An ordered membership message ends what one call of `take` gives, for it may change the
    sources.
    """

    def __init__(
        self,
        me: MemberId,
        sources: Iterable[MemberId],
        start: int,
        counters: Counters,
        activations: Mapping[MemberId, int] | None = None,
    ) -> None:
        self._counters = counters
        self._me = me
        self._sources: dict[MemberId, _Source] = {}
        self._closed = False
        for source in sources:
            self.add(source, start, (activations or {}).get(source, 1))
        self.delivered = start
        """The timestamp of the last message delivered: the group's delivered time (D4)."""
        self.blocked = False
        """Whether a complete message waits for another source."""
        self.held_change: int | None = None
        """The timestamp of an ordered membership message that is next and waits for `release`."""
        self.changed = start
        """The timestamp of the last one delivered."""
        self._released = start

    def __contains__(self, source: MemberId) -> bool:
        return source in self._sources

    @property
    def sources(self) -> list[MemberId]:
        """Everybody whose messages have a place in this order, those included whose Add is not delivered yet."""
        return list(self._sources)

    def activations(self) -> dict[MemberId, int]:
        """The first frame of each source that is not delivered here."""
        return {source.id: source.delivered_seq + 1 for source in self._sources.values()}

    def promises(self) -> dict[MemberId, int]:
        """What each source's later messages exceed, as somebody may take it who starts at what is delivered here."""
        found: dict[MemberId, int] = {}
        for source in self._sources.values():
            begun = source.lowest_undelivered()
            found[source.id] = source.promise if begun is None else min(source.promise, begun - 1)
        return found

    def add(self, source: MemberId, promise: int, activation: int) -> None:
        """A source whose messages exceed `promise`; one that is still here comes back after it has left."""
        present = self._sources.get(source)
        if present is not None:
            present.returns.append(promise)
            return
        unbounded = source == self._me or self._closed
        self._sources[source] = _Source(source, MAX_TIMESTAMP if unbounded else promise, activation)

    def begins_above(self, source: MemberId, activation: int) -> bool:
        """Whether a source is not here from this frame on."""
        present = self._sources.get(source)
        return present is None or present.activation > activation

    def forget(self, source: MemberId) -> None:
        self._sources.pop(source, None)

    def queued_changes(self) -> list[tuple[int, bytes]]:
        """Ordered membership messages that have not taken effect: timestamp and body, in their order."""
        found = [
            (chunk.first_timestamp, message.payload.tobytes())
            for source in self._sources.values()
            for chunk in source.queue
            if chunk.change
            for message in chunk.messages()
        ]
        return sorted(found)

    def leave(self, source: MemberId, timestamp: int) -> None:
        """A source's departure was delivered: nobody waits for it any more, unless it is about to come back."""
        present = self._sources.get(source)
        if present is None:
            return
        later = [returns for returns in present.returns if returns > timestamp]
        if later:
            self._raise(present, min(later), by_keepalive=False)
            present.returns = later
        else:
            del self._sources[source]

    def next_change(self, bound: int, failed: Collection[MemberId], after: int) -> int | None:
        """The first ordered membership message after a timestamp that the end of the epoch leaves."""
        found = [
            chunk.first_timestamp
            for source in self._sources.values()
            for chunk in source.queue
            if chunk.change
            and chunk.first_timestamp > after
            and (chunk.first_timestamp <= bound or source.id not in failed)
        ]
        return min(found, default=None)

    def close(self, last: Mapping[MemberId, int], changes: int) -> None:
        """The epoch ends: what lies after these seqs is discarded, and no source says any more (M4).

        Membership messages after `changes` have no effect of their own: the change that ends the epoch covers them.
        """
        for source in self._sources.values():
            end = last.get(source.id, source.delivered_seq)
            source.assembly.clear()
            while source.queue and source.queue[-1].run.seq + source.queue[-1].run.ends[0] > end:
                source.queue.pop()
            if source.queue and source.queue[-1].last_seq > end:
                chunk = source.queue[-1]
                source.queue[-1] = chunk.cut(chunk.run.timestamp + end - chunk.run.seq)[0]
            source.queue = deque(
                chunk for chunk in source.queue if not chunk.change or chunk.first_timestamp <= changes
            )
            source.promise = MAX_TIMESTAMP
            source.by_keepalive = False
        self._released = MAX_TIMESTAMP
        self._closed = True

    def kept_seq(self, source: MemberId, bound: int) -> int:
        """The last frame of a source that belongs to a whole message at or below a timestamp."""
        present = self._sources[source]
        last = present.delivered_seq
        for chunk in present.queue:
            if chunk.last_timestamp <= bound:
                last = chunk.last_seq
            elif chunk.first_timestamp <= bound:
                return chunk.cut(bound)[0].last_seq
            else:
                break
        return last

    def arrived(self, run: Run) -> None:
        """Only what is in order counts."""

    def ordered(self, run: Run) -> None:
        if self._closed:
            return  # of a source whose Add is the last thing before the cut: it may follow from what that leaves out
        source = self._sources[run.source]
        self._raise(source, run.last_timestamp, by_keepalive=False)
        if (chunk := source.assembly.add(run)) is not None:
            source.queue.append(chunk)

    def promised(self, source: MemberId, timestamp: int) -> None:
        self._raise(self._sources[source], timestamp, by_keepalive=True)

    def _raise(self, source: _Source, timestamp: int, *, by_keepalive: bool) -> None:
        if timestamp > source.promise:
            source.promise = timestamp
            source.by_keepalive = by_keepalive

    def take(self) -> list[Chunk]:
        taken: list[Chunk] = []
        self.blocked = False
        self.held_change = None
        while (source := self._least()) is not None:
            chunk = source.queue[0]
            first = chunk.first_timestamp
            limit = self._limit(source, first)
            if first > limit:
                self.blocked = True
                break
            if chunk.change and first > self._released:
                self.held_change = first
                break
            if chunk.last_timestamp <= limit:
                source.queue.popleft()
            else:
                chunk, source.queue[0] = chunk.cut(limit)
                self._counters.run_splits += 1
            self.delivered = chunk.last_timestamp
            source.delivered_seq = chunk.last_seq
            taken.append(chunk)
            if chunk.change:
                self.changed = first
                break
        return taken

    def next_held(self) -> tuple[MemberId, bytes]:
        """The sender and the body of the ordered membership message that waits for `release`."""
        source = self._least()
        assert source is not None
        (message,) = source.queue[0].messages()
        return source.id, message.payload.tobytes()

    def release(self, timestamp: int) -> None:
        """Every sender has everything up to this ordered membership message: it may take effect (M13)."""
        self._released = max(self._released, timestamp)
        self.held_change = None

    def _least(self) -> _Source | None:
        """The source whose head is least by (timestamp, sender id)."""
        least: _Source | None = None
        least_first = 0
        for source in self._sources.values():
            if source.queue:
                first = source.queue[0].first_timestamp
                if least is None or first < least_first or (first == least_first and source.id < least.id):
                    least, least_first = source, first
        return least

    def _limit(self, least: _Source, first: int) -> int:
        """Up to which timestamp messages of the least source precede everything of the others."""
        limit = int(MAX_TIMESTAMP)
        by_keepalive = False
        for other in self._sources.values():
            if other is least:
                continue
            if other.queue:
                head = other.queue[0].first_timestamp
                bound = head if least.id < other.id else head - 1
            else:
                bound = other.promise
                by_keepalive |= other.by_keepalive
            if bound < limit:
                limit = bound
        if by_keepalive and first <= limit:
            self._counters.keepalive_deliveries += 1
        return limit

    def blocked_on(self) -> list[tuple[MemberId, int]]:
        """Sources whose promise the least message waits for, and the promise it needs."""
        source = self._least()
        if source is None:
            return []
        wanted = source.queue[0].first_timestamp
        return [
            (other.id, wanted)
            for other in self._sources.values()
            if other is not source and not other.queue and other.promise < wanted
        ]

    def acknowledged(self, own: int) -> int:
        lowest = own
        for source in self._sources.values():
            # As lowest_undelivered says it; asked at every stimulus, of every source.
            begun = source.queue[0].start_timestamp if source.queue else source.assembly.start_timestamp
            bound = source.promise if begun is None else begun - 1
            if bound < lowest:
                lowest = bound
        return lowest
