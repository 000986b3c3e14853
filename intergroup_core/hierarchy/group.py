"""The control process of a site as a member of one process group sees it (H1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from intergroup_core.hierarchy.distances import MeasuredDistances
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import Instant, MemberId, SiteId, Timestamp, group_tag
from intergroup_core.ports import Told
from intergroup_core.wire.hierarchy import CutKey, GroupKey, Reach


class GroupControl:
    """Tells the hierarchy what the member has, and the member what the hierarchy knows of its group."""

    def __init__(self, process: ControlProcess, group: str, distance_start_ns: int) -> None:
        self._process = process
        self.distances = MeasuredDistances(process, distance_start_ns)
        self._group = group_tag(group)
        self._epoch: int | None = None
        self._reached: set[CutKey] = set()

    @property
    def place(self) -> tuple[SiteId, SiteId | None]:
        return self._process.me, self._process.coordinator

    def placed(self, member: MemberId, site: SiteId, coordinator: SiteId | None) -> None:
        self.distances.placed(member, site, coordinator)

    def exchanged(self, member: MemberId, round_trip_us: int) -> None:
        self.distances.exchanged(member, round_trip_us)

    def acknowledge(self, epoch: int, upto: Timestamp, room: int, *, pressing: bool, now: Instant) -> None:
        if self._epoch is not None and epoch != self._epoch:
            self._process.rename(GroupKey(self._group, self._epoch), GroupKey(self._group, epoch))
        self._epoch = epoch
        self._process.acknowledge(GroupKey(self._group, epoch), upto, room=room, pressing=pressing, now=now)

    def withdraw(self) -> None:
        for key in self._reached:
            self._process.forget_reach(key)
        self._reached.clear()
        if self._epoch is not None:
            self._process.withdraw(GroupKey(self._group, self._epoch))
            self._epoch = None

    def told(self, epochs: Iterable[int], now: int) -> Told | None:
        table, at = self._process.told(self._group, now)
        entries = [table[epoch] for epoch in epochs if epoch in table]
        if not entries or at is None:
            return None
        slowest = min(entries, key=lambda entry: entry.upto)
        return Told(
            upto=slowest.upto,
            members=sum(entry.members for entry in entries),
            room=min(entry.room for entry in entries),
            slowest=slowest.name,
            at=at,
        )

    def roll(self, now: int) -> tuple[str, ...]:
        return tuple(sorted(self._process.roll(self._group, now).values()))

    def counted(self, epoch: int, now: int) -> bool:
        return self._process.counted(GroupKey(self._group, epoch), now)

    def shares(self, member: MemberId) -> bool:
        place = self.distances.place_of(member)
        return place is not None and place[1] is not None and self._process.knows_coordinator(place[1])

    def reach(self, epoch: int, reaches: Mapping[MemberId, tuple[int, Timestamp]], now: Instant) -> None:
        keys = {CutKey(self._group, epoch, source): Reach(*reach) for source, reach in reaches.items()}
        for key in self._reached - keys.keys():
            self._process.forget_reach(key)
        for key, reach in keys.items():
            self._process.reach(key, reach, now)
        self._reached = set(keys)

    def cut(self, epoch: int) -> dict[MemberId, tuple[int, Timestamp]]:
        return {
            key.source: (reach.seq, reach.promise)
            for key, reach in self._process.cuts().items()
            if key.group == self._group and key.epoch == epoch
        }
