"""Plans the reads of one group, on the driver: through its site's agent, which may come and go, and from its logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from intergroup_core.client.fetching import Keeper
from intergroup_core.client.planning import Head, PlanningClient
from intergroup_core.config import Config
from intergroup_core.errors import (
    AgentUnavailable,
    ChannelBroken,
    DataLost,
    LocalProtocolError,
    LogDamaged,
    LogError,
    MemberEnded,
    RangeUnavailable,
)
from intergroup_core.ids import Service, ViewId, timestamp_at
from intergroup_core.log.chain import Described
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.part import joined
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore
from pyspark_intergroup.committed import Committed
from pyspark_intergroup.committed_slicing import CommittedSlicer
from pyspark_intergroup.course import Course, Moment, cut_before_time, cut_before_view, moments
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.missing import MissingRanges
from pyspark_intergroup.offsets import beginning
from pyspark_intergroup.order import PassedEntries, is_behind
from pyspark_intergroup.slice import AnySlice, LostSlice, described_in
from pyspark_intergroup.slicing import Slicer, SliceSizes
from pyspark_intergroup.standstill import Standstill
from pyspark_intergroup.transactions import TransactionMissing, lost_transaction, tell_lost

_log = logging.getLogger(__name__)

OPEN_SECONDS = 30.0
ASK_SECONDS = 5.0
COMPLETE_SECONDS = 20.0
"""How long a plan waits for what this site missed; a batch that waits longer is tried again."""
JOIN_SECONDS = 5.0
"""How long a reader that has just begun waits for a group; one that is silent so long has nobody who sends."""
LOOK_SECONDS = 0.02
KEEPERS_SECONDS = 10.0
"""How old the list of who holds a group may be."""

TRANSIENT = (AgentUnavailable, ChannelBroken, MemberEnded, LocalProtocolError, TimeoutError, OSError)
"""What passes: the agent ended, is being started, or is busy."""

T = TypeVar("T")


class GroupPlanner:
    """One group by one service; whatever passes leaves it able to go on with the next call."""

    def __init__(
        self,
        group: str,
        service: Service,
        config: Config,
        *,
        home: str | None,
        level: str,
        fail_on_data_loss: bool,
        fetch_timeout_s: float,
        committed: bool = False,
    ) -> None:
        self.group, self.service = group, service
        self._config = config
        self._home = home
        self._level = level
        self._fail_on_data_loss = fail_on_data_loss
        self._fetch_timeout_s = fetch_timeout_s
        self._committed = Committed(may_lose=not fail_on_data_loss) if committed and service is Service.RTO else None
        """Where only what is committed is read."""
        self._missing = MissingRanges(group, fetch_timeout_s, may_lose=not fail_on_data_loss)
        self._client: PlanningClient | None = None
        self._reader: StreamReader | None = None
        self._complete = False
        """Whether this site has all that lies between what is planned next and the log that grows."""
        self._skipped: tuple[Cut | None, Cut] = (None, beginning(service))
        """A cut behind which something is lost, and from where on there is something again."""
        self.trouble: Exception | None = None
        """What came in the way of an attempt last."""
        self._standstill = Standstill()
        self._held: dict[Path, int] = {}
        """In `rso`, up to which entry of the log that grows is known to be done with."""
        self._keepers: list[Keeper] = []
        self._keepers_at = float("-inf")

    # The agent

    def _connected(self) -> PlanningClient:
        if self._client is None or not self._client.alive:
            self.close()
            self._client = PlanningClient(self.group, self.service, self._config, self._home, timeout=OPEN_SECONDS)
            self._reader, self._complete = None, False
        return self._client

    def attempt(self, ask: Callable[[], T]) -> T | None:
        """What something answers; None where it cannot for now, and the next attempt begins with a new connection."""
        try:
            return ask()
        except TimeoutError as error:
            _log.info("group %s: %s", self.group, error)
            self.trouble = error
        except TRANSIENT as error:
            _log.warning("group %s cannot be planned for now: %s", self.group, error)
            self.trouble = error
            self.close()
        return None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # Where things are

    def head(self, known: Cut | None = None, wait: float = 0.0) -> Head:
        """Up to where the group can be planned; where that is known already, waited for so many seconds."""
        head = self._connected().head(self._level, ASK_SECONDS, known=known, wait=wait)
        if (told := self._standstill.tell(head)) is not None:
            _log.warning("group %s: nothing new is planned at read level %s: %s", self.group, self._level, told)
        return head

    def latest(self) -> Cut:
        """Behind all that was sent before this is asked; where nobody sends, behind all that anybody has kept."""
        asked = timestamp_at(time.time_ns())
        deadline = time.monotonic() + JOIN_SECONDS
        head = self.head()
        # Senders that have nothing to say still promise that, and then the head has all that came before; not in uu.
        promised = self.service is not Service.UU
        while (head.cut is None or (promised and head.upto < asked)) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)  # the cut may stay the same while time goes on, which is no news
            head = self.head()
        return head.cut if head.cut is not None else self._kept_end()

    def _kept_end(self) -> Cut:
        """Behind what all sites have kept of a group in which nobody sends."""
        client = self._connected()
        earliest = client.earliest(ASK_SECONDS)
        if earliest is None:
            return self._beginning()
        with suppress(TimeoutError):
            client.complete(earliest, JOIN_SECONDS)  # it waits for more in the end, and there is none
        return client.reached or earliest

    def earliest(self) -> Cut:
        """Before everything that any site has."""
        client = self._connected()
        deadline = time.monotonic() + JOIN_SECONDS
        while (cut := client.earliest(ASK_SECONDS)) is None and time.monotonic() < deadline:
            if self.head().cut is None:
                time.sleep(LOOK_SECONDS)  # other sites are found by asking, and may not be up yet
        return self._whole_from(cut) if cut is not None else self._beginning()

    def _whole_from(self, cut: Cut) -> Cut:
        """The same, or behind transactions of which the first rows are kept nowhere."""
        if self._committed is None or not isinstance(cut, OrderCut):
            return cut
        stop = self.latest()
        begin = self._held_between(cut, stop)
        if not isinstance(begin, OrderCut) or not isinstance(stop, OrderCut):
            return cut
        return self._committed.whole_from(self.logs(), begin, stop)

    def _beginning(self) -> Cut:
        if self.service is not Service.UU:
            return beginning(self.service)
        return EntryCut(read_manifest(FileDisk(self._connected().part)).log, 0)

    def before(self, timestamp: int, start: Cut, stop: Cut) -> Cut:
        """The last cut between two others before which every row has a lower timestamp."""
        if start == stop:
            return start
        begin = self._held_between(start, stop)
        course = Course(self.logs(), begin, stop)
        return cut_before_time(course, start, stop, timestamp, by_time=self.service is Service.RTO)

    def before_view(self, view: ViewId) -> Cut:
        """The last cut before a view's own row."""
        start, stop = self.earliest(), self.latest()
        start = self._held_between(start, stop)
        found = cut_before_view(Course(self.logs(), start, stop), start, view)
        if found is not None:
            return found
        raise RangeUnavailable(f"no site has view {view} of group {self.group}; begin at another, or at earliest")

    def logs(self) -> StreamReader:
        """This site's logs of the group as they are now."""
        client = self._connected()
        parts = StreamStore(client.logs).parts(self.group, self.service)
        if self._reader is None:
            self._reader = StreamReader(parts)
        else:
            self._reader.refresh(parts)
        return self._reader

    def _looked_at(self) -> StreamReader:
        """The same as they were when they were last looked at."""
        return self.logs() if self._reader is None else self._reader

    def _held_between(self, start: Cut, stop: Cut) -> Cut:
        """Once this site has all between two cuts; the cut from which it has, which is another where the first is the
        beginning of everything, or where what followed it is lost and need not be there."""
        begin = self._held_from_a_cut(start, stop)
        if self._reader is None or self._reader.may_jump:
            with suppress(RangeUnavailable):  # who plans is told
                self._fill(begin, stop)
            self.logs()
        return begin

    def _fill(self, start: Cut, stop: Cut) -> None:
        """Have what this site's logs lack in the midst fetched; DataLost where nobody has it and it must be there."""
        if isinstance(start, OrderCut) and isinstance(stop, OrderCut):
            lost = self._missing.fetched(self._connected(), self.logs, start, stop)
            if lost is not None:
                jump, why = lost
                raise self._lost(jump.begin, why)

    def _planned(self, start: Cut, stop: Cut, plan: Callable[[], T]) -> T:
        """A plan, made of logs that were just looked at; and once more, with another look, where it came upon something
        that this site lacks and others may have."""
        tried: set[tuple[OrderCut, OrderCut]] = set()
        filled = False
        while True:
            try:
                return plan()
            except LogDamaged:
                if filled:
                    raise
                self._fill(start, stop)
                filled = True
                self.logs()
            except TransactionMissing as missing:
                why = missing.why
                if (missing.start, missing.stop) not in tried:
                    tried.add((missing.start, missing.stop))
                    refused = self._got(missing.start, missing.stop)
                    if refused is None:
                        self.logs()
                        continue
                    why = f"{why}; {refused}"
                self._lose(missing, why)
                self.logs()

    def _got(self, start: OrderCut, stop: OrderCut) -> str | None:
        """Have the rows of a transaction fetched; why that cannot be where it cannot."""
        if not self._holds(start, stop):
            return self._missing.got(self._connected(), start, stop)
        try:
            self._fill(start, stop)
        except DataLost as error:
            return str(error)
        return None

    def _lose(self, missing: TransactionMissing, why: str) -> None:
        assert self._committed is not None
        if self._fail_on_data_loss:
            raise lost_transaction(self.group, missing.name, why)
        _log.warning("group %s: in the place of transaction %s there is a gap: %s", self.group, missing.name, why)
        tell_lost(self.logs(), missing.decision, why)
        self._committed.lose(missing, why)

    def _held_from_a_cut(self, start: Cut, stop: Cut) -> Cut:
        lost, left = self._skipped
        if start == lost:
            self.logs()
            return left
        begin = start
        if start == beginning(self.service):
            begin = self._connected().earliest(ASK_SECONDS) or start
        if self._holds(begin, stop):
            return begin
        try:
            # Up to the log that grows, where nobody sends, there is nothing that one could wait for.
            self._complete = self._connected().complete(
                begin, COMPLETE_SECONDS, enough=lambda cut: not is_behind(stop, cut)
            )
        except RangeUnavailable as error:
            if self._fail_on_data_loss:
                raise self._lost(begin, str(error)) from None
            self._skipped = start, self._held_from(start, error)
            return self._skipped[1]
        self.logs()
        return begin

    def _holds(self, start: Cut, stop: Cut) -> bool:
        """Whether it is all here already."""
        try:
            return bool(self.logs().ranges(start, stop))
        except RangeUnavailable:
            return False

    def _lost(self, cut: Cut, why: str) -> DataLost:
        return DataLost(
            f"group {self.group}: what follows {cut} is lost ({why}); set failOnDataLoss=false to go on with what is "
            "left, or begin anew with `intergroup offsets reset`"
        )

    def _held_from(self, start: Cut, error: LogError) -> Cut:
        """Where what this site has up to its head begins."""
        held = self.logs().first()
        _log.warning(
            "group %s: what follows %s is lost (%s), and reading goes on at %s", self.group, start, error, held
        )
        return held if held is not None else start

    # Batches

    def end(self, start: Cut, stop: Cut, limits: Limits) -> Cut:
        """Where a batch from a cut ends that goes to another at most."""
        if self.service is Service.RSO and not self._complete:
            # The head does not name everybody whose rows may be missing here.
            with suppress(TimeoutError, RangeUnavailable):
                self._complete = self._connected().complete(start, JOIN_SECONDS)
        begin = self._held_between(start, stop)
        stop = self._with_departed(start, stop)
        if not limits.any:
            return stop
        return self._planned(begin, stop, lambda: self._limited(begin, stop, limits)) or start

    def _limited(self, begin: Cut, stop: Cut, limits: Limits) -> Cut | None:
        end: Cut | None = None
        rows = nbytes = 0
        for moment in self._moments(begin, stop):
            rows, nbytes = rows + moment.rows, nbytes + moment.nbytes
            if end is not None and limits.exceeded_by(rows, nbytes):
                break
            end = moment.cut
        return end

    def _with_departed(self, start: Cut, stop: Cut) -> Cut:
        """In `rso` a head knows nothing of senders that were gone when the log began: all of theirs lies before it.

        Who is named once stays named until a view says where it ended, so that nobody's rows can be taken for new ones.
        """
        if not isinstance(start, SourceCut) or not isinstance(stop, SourceCut):
            return stop
        logs = self.logs()
        known = logs.head()
        live = next((each.head() for each in logs.parts if Path(each.where) == self._connected().part), None)
        here = live.seqs if isinstance(live, SourceCut) else {}  # one that has nothing yet is not among the parts
        gone = SourceCut()
        if self._complete and isinstance(known, SourceCut):
            gone = SourceCut({source: seq for source, seq in known.seqs.items() if source not in here})
        return logs.carried_on(joined(start, gone), stop)

    def rows(self, start: Cut, stop: Cut, most: int) -> int:
        """How many rows lie between two cuts, counted until there are so many."""
        if start == stop:
            return 0
        begin = self._held_between(start, stop)
        return self._planned(begin, stop, lambda: self._counted(begin, stop, most))

    def _counted(self, start: Cut, stop: Cut, most: int) -> int:
        found = 0
        for moment in self._moments(start, stop):
            found += moment.rows
            if found >= most:
                break
        return found

    def _moments(self, start: Cut, stop: Cut) -> Iterator[Moment]:
        return moments(self._course(start, stop), by_time=self.service is Service.RTO)

    def _course(self, start: Cut, stop: Cut) -> Course:
        if self._committed is not None and isinstance(start, OrderCut) and isinstance(stop, OrderCut):
            return self._committed.course(self._looked_at(), start, stop)
        return Course(self._looked_at(), start, stop)

    def slices(self, start: Cut, stop: Cut, sizes: SliceSizes) -> list[AnySlice]:
        """What tasks are to read of a batch."""
        if start == stop:
            return []
        slicer = Slicer(self.group, self.service, self.keepers(), sizes)
        begin = self._held_between(start, stop)
        slices = self._planned(begin, stop, lambda: self._sliced(slicer, begin, stop))
        found: list[AnySlice] = []
        if begin != start and start != beginning(self.service):
            found.append(
                LostSlice(group=self.group, service=self.service, start=start, stop=begin, reason="not kept anywhere")
            )
        if self._fail_on_data_loss:
            for each in described_in(slices):
                self._refuse_gaps(each)
        return found + slices

    def _sliced(self, slicer: Slicer, begin: Cut, stop: Cut) -> list[AnySlice]:
        if self._committed is not None and isinstance(begin, OrderCut) and isinstance(stop, OrderCut):
            return CommittedSlicer(slicer, self._committed).slices(self._looked_at(), begin, stop)
        return list(slicer.slices(self._looked_at(), begin, stop))

    def _refuse_gaps(self, described: Described) -> None:
        if described.gaps:
            _, why = described.gaps[0]
            given = ", and a query here was given the gap instead" if self.service is Service.RTO else ""
            raise self._lost(described.start, f"this site's member was out of the group: {why}{given}")

    def keepers(self) -> list[Keeper]:
        """Who has something of the group, this site first; not asked for again for a while."""
        if time.monotonic() - self._keepers_at > KEEPERS_SECONDS:
            self._keepers = self._connected().keepers(ASK_SECONDS)
            self._keepers_at = time.monotonic()
        return self._keepers

    def commit(self, end: Cut, subscription: str | None) -> None:
        """Everything up to a cut is done with."""
        client = self._connected()
        kept = self._needed_at(end)
        if subscription is not None and end != beginning(self.service):
            client.commit(subscription, kept, ASK_SECONDS)
        entry = self._live_entry(kept, client.part)
        if entry is not None:
            client.hold(entry, ASK_SECONDS)

    def _needed_at(self, end: Cut) -> Cut:
        """What is staged before a cut and may be committed behind it is needed still."""
        if self._committed is None or not isinstance(end, OrderCut) or end == beginning(self.service):
            return end
        try:
            needed = self._committed.needed(self.logs(), end)
        except LogError:
            return end
        return needed if needed == end or self._holds(needed, end) else end

    def _live_entry(self, cut: Cut, part: Path) -> int | None:
        """Before which entry of the log that grows a cut lies; None where it lies in an older one."""
        try:
            if isinstance(cut, SourceCut):
                return self._passed(cut, part)
            reader, place = self.logs().place_of(cut)
        except RangeUnavailable:
            return None
        return place.entry if Path(reader.where) == part else None

    def _passed(self, cut: SourceCut, part: Path) -> int | None:
        """Before which entry of the log that grows everything lies before a cut, which has no one place there."""
        live = next((each for each in self.logs().parts if Path(each.where) == part), None)
        if live is None:
            return None
        begin = max(live.first, self._held.get(part, 0))
        passed = PassedEntries(live.lineage(), cut)
        entry = begin + sum(1 for _ in takewhile(passed.has, live.entries(begin, check=False)))
        self._held = {part: entry}
        return entry
