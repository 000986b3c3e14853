"""What a site's members tell the hierarchy and learn from it: acknowledgments, cuts, distances (T2.4, T3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from intergroup_core.config import HierarchyConfig
from intergroup_core.hierarchy.acknowledgments import furthest
from intergroup_core.hierarchy.moving import Moving
from intergroup_core.hierarchy.places import MILLISECOND, Timer
from intergroup_core.ids import Instant, SiteId, Timestamp
from intergroup_core.wire.hierarchy import ANY_ROOM, Acknowledgment, CutKey, GroupKey, Reach


class Knowledge(Moving):
    """The port between members and the control process of their site (H1)."""

    PAUSE_FACTOR = 0.5
    """A process that comes late by this part of the fault time has stood still itself."""

    def __init__(self, *, me: SiteId, name: str, config: HierarchyConfig, system_ttl: int, rng: Random) -> None:
        super().__init__(me=me, name=name, config=config, system_ttl=system_ttl, rng=rng)
        self._stable: dict[GroupKey, Acknowledgment] = {}
        self._local_sent_at = self._global_sent_at = 0
        self._now = 0
        """Of the last stimulus."""
        self._asleep_ns = round(self.PAUSE_FACTOR * self._config.fault_ms * MILLISECOND)

    def acknowledge(
        self, key: GroupKey, upto: Timestamp, *, room: int = ANY_ROOM, members: int = 1, pressing: bool, now: Instant
    ) -> None:
        """What this site's members of a group have and still take; pressing while buffers wait for it (H5)."""
        own = Acknowledgment(upto, members, self.me, self._voice.name, room)
        if self._own.get(key) == own:
            return
        known = self._own.get(key)
        self._own[key] = own
        if known is not None and upto < known.upto:
            # One more member, which has less: nobody waits for that yet.
            self._included_at.pop(key, None)
            for attachment in self._attachments:
                attachment.forget(key)
        if self._lead is not None:
            self._included_at.setdefault(key, now.mono)
            self._lead.own(self._own)
        if pressing:
            self._hurry(now.mono)

    def rename(self, old: GroupKey, new: GroupKey) -> None:
        """The member goes on in another epoch: whoever waits for it in the old one waits for it in the new one."""
        if old in self._own:
            self._own[new] = self._own.pop(old)
        if old in self._included_at:
            self._included_at[new] = self._included_at.pop(old)
        self._stable.pop(old, None)
        for attachment in self._attachments:
            attachment.rename(old, new)
        if self._lead is not None:
            self._lead.own(self._own)

    def withdraw(self, key: GroupKey) -> None:
        """The site has no member in a group any more."""
        self._own.pop(key, None)
        self._included_at.pop(key, None)
        self._stable.pop(key, None)
        for attachment in self._attachments:
            attachment.forget(key)
        if self._lead is not None:
            self._lead.own(self._own)

    def reach(self, key: CutKey, reach: Reach, now: Instant) -> None:
        """What this site has of a source that a repair may leave behind."""
        self._cuts[key] = reach
        self._hurry(now.mono)

    def forget_reach(self, key: CutKey) -> None:
        """The repair is over."""
        self._cuts.pop(key, None)

    def cuts(self) -> Mapping[CutKey, Reach]:
        """The most that anybody in the system is known to have (T5.4.2)."""
        found = furthest((self._cuts, *(cuts for attachment in self._attachments for cuts in attachment.all_cuts())))
        return found if self._lead is None else self._lead.system_cuts(found)

    def stable(self, key: GroupKey) -> Acknowledgment | None:
        """What every counted member of the system has of a group, as far as this site knows."""
        if self._lead is not None:
            self._learn(self._lead.system(self._now))
        return self._stable.get(key)

    def told(self, group: int, now: int) -> tuple[Mapping[int, Acknowledgment], int | None]:
        """By epoch what every counted member of a group has, as it was last said, and when that was."""
        lead, attached = self._lead, self._attached
        table: Mapping[GroupKey, Acknowledgment] = {}
        at: int | None = None
        if lead is not None and (system := lead.system(now)) is not None:
            table, at = system, now
        elif attached is not None:
            table, at = attached.system, attached.told_at
        return {key.epoch: entry for key, entry in table.items() if key.group == group}, at

    def roll(self, group: int, now: int) -> dict[SiteId, str]:
        """Names of sites that have a member in a group, this one included, as far as they were heard of."""
        found = {} if all(key.group != group for key in self._own) else {self.me: self._voice.name}
        for attachment in self._attachments:
            found |= attachment.roll.of(group, now)
        if self._lead is not None:
            found |= self._lead.roll.of(group, now)
        return found

    def counted(self, key: GroupKey, now: int) -> bool:
        """Whether every coordinator waits for this site, so that nothing it needs is dropped (D7).

        True only for as long as it must still be so: what others heard counts for the fault time and a grace.
        """
        at = [attachment.counted_at(key) for attachment in self._attachments]
        if self._lead is not None and key in self._included_at and not self._slept(now):
            counted = self._lead.counted_upto(now)
            if counted is not None and counted > self._included_at[key]:
                at.append(counted)
        return any(time is not None and now - time <= self._belief_ns for time in at)

    def knows_coordinator(self, site: SiteId) -> bool:
        """Whether a site is a coordinator of this hierarchy: what it says to its children it says of this site too."""
        if self._lead is not None and (site == self.me or site in self._lead.fellows):
            return True
        return any(site == place.coordinator or site in place.from_coordinator for place in self._attachments)

    def _slept(self, now: int) -> bool:
        """Whether it has missed so much time that it does not know any more who there is."""
        return now - self._now >= self._asleep_ns

    def measured_us(self, site: SiteId) -> int | None:
        """The one-way delay to a site with which this one has exchanged messages."""
        if site == self.me:
            return 0
        groups = [attachment.siblings for attachment in self._attachments]
        if self._lead is not None:
            groups += [self._lead.children, self._lead.fellows]
        for peers in groups:
            known = peers.get(site)
            if known is not None and known.distance_us is not None:
                return known.distance_us
        return None

    def distance_us(self, site: SiteId, coordinator: SiteId | None) -> int | None:
        """The one-way delay to a site that is a child of a coordinator, or one itself (table 2.1)."""
        measured = self.measured_us(site)
        if measured is not None:
            return measured
        if self._lead is not None and coordinator is not None:
            fellow = self._lead.fellows.get(coordinator)
            if fellow is not None:
                return fellow.distance_us
        for attachment in self._attachments:
            distance = attachment.distance_to(site)
            if distance is None:
                further = attachment.from_coordinator.get(site)
                if further is None and coordinator is not None:
                    further = attachment.from_coordinator.get(coordinator)
                own = attachment.distance_us
                distance = own + further if own is not None and further is not None else None
            if distance is not None:
                return distance
        return None

    def _learn(self, system: Mapping[GroupKey, Acknowledgment] | None) -> None:
        """Take what the system has acknowledged; it never goes back."""
        if not system:
            return
        for key in self._own:
            told, known = system.get(key), self._stable.get(key)
            if told is not None and (known is None or told.upto >= known.upto):
                self._stable[key] = told

    def _hurry(self, now: int) -> None:
        """Somebody waits for what this site says: no later than the shortest interval after the last message."""
        if Timer.LOCAL in self._timers:
            self._timers.arm_before(Timer.LOCAL, max(now, self._local_sent_at + self._local.shortest()))
        if Timer.GLOBAL in self._timers:
            self._timers.arm_before(Timer.GLOBAL, max(now, self._global_sent_at + self._global.shortest()))
