"""What has arrived of each source: where it is contiguous, where it has gaps (T4.7.2, figure 4.1)."""

from __future__ import annotations

from bisect import bisect_left

from intergroup_core.wire.run import Run


class Reception:
    """One source's frames by seq: duplicates are cut away, later frames wait for the gap before them."""

    __slots__ = ("_later", "_promises", "contiguous", "highest", "promise")

    MAX_PROMISES = 16
    """Keep-alives remembered for frames that are still missing; the newest ones are kept."""

    def __init__(self, activation: int, start: int) -> None:
        self.contiguous = activation - 1
        """The last seq below which nothing is missing (D1)."""
        self.highest = activation - 1
        """The highest seq known to exist."""
        self.promise = start
        self._later: list[Run] = []
        self._promises: list[tuple[int, int]] = []

    def accept(self, run: Run) -> list[Run]:
        """The parts of a run that were not here yet."""
        if run.seq == self.contiguous + 1 and not self._later:
            return [run]
        fresh: list[Run] = []
        at = max(run.seq, self.contiguous + 1)
        last = run.last_seq
        for held in self._later:
            if held.last_seq < at:
                continue
            if held.seq > last:
                break
            if held.seq > at:
                fresh.append(run.slice(at - run.seq, held.seq - run.seq))
            at = held.last_seq + 1
        if at <= last:
            fresh.append(run.slice(at - run.seq, run.count))
        return fresh

    def store(self, run: Run) -> list[Run]:
        """Take a fresh part; everything that is contiguous because of it, in order."""
        if run.last_seq > self.highest:
            self.highest = run.last_seq
        if run.seq != self.contiguous + 1:
            at = bisect_left(self._later, run.seq, key=lambda held: held.seq)
            self._later.insert(at, run)
            return []
        ready = [run]
        self.contiguous = run.last_seq
        while self._later and self._later[0].seq == self.contiguous + 1:
            following = self._later.pop(0)
            ready.append(following)
            self.contiguous = following.last_seq
        self.promise = max(self.promise, ready[-1].last_timestamp)
        return ready

    def skip_to(self, seq: int, promise: int) -> None:
        """Nothing before this seq is wanted any more; what follows exceeds the promise."""
        self.promise = max(self.promise, promise)
        if seq - 1 <= self.contiguous:
            return
        self.contiguous = seq - 1
        self.highest = max(self.highest, seq - 1)
        self._later = [run for run in self._later if run.seq >= seq]
        self._promises = [(at, timestamp) for at, timestamp in self._promises if at >= seq]

    def exists(self, seq: int) -> None:
        """Frames up to this seq are known to have been sent."""
        if seq > self.highest:
            self.highest = seq

    def keepalive(self, seq: int, timestamp: int) -> bool:
        """A promise made after frame `seq`; whether it holds already (D2)."""
        self.exists(seq)
        if seq == self.contiguous:
            self.promise = max(self.promise, timestamp)
            return True
        if seq > self.contiguous:
            self._promises.append((seq, timestamp))
            if len(self._promises) > self.MAX_PROMISES:
                self._promises.sort()
                del self._promises[0]
        return False

    def settle_promises(self) -> int | None:
        """The promise that became valid because the frames before it arrived, if any."""
        if not self._promises:
            return None
        valid = [timestamp for seq, timestamp in self._promises if seq == self.contiguous]
        self._promises = [(seq, timestamp) for seq, timestamp in self._promises if seq > self.contiguous]
        if not valid:
            return None
        self.promise = max(self.promise, *valid)
        return self.promise

    def gaps(self, first: int, last: int) -> list[tuple[int, int]]:
        """The missing ranges between two seqs."""
        missing: list[tuple[int, int]] = []
        at = max(first, self.contiguous + 1)
        for held in self._later:
            if held.last_seq < at:
                continue
            if held.seq > last:
                break
            if held.seq > at:
                missing.append((at, held.seq - 1))
            at = held.last_seq + 1
        if at <= last:
            missing.append((at, last))
        return missing
