"""A coordinator's side: its children, its fellow coordinators, and the minimum over all of them (T2.2, T3.5)."""

from __future__ import annotations

from intergroup_core.hierarchy.acknowledgments import Gathering, Ledger, furthest, least
from intergroup_core.hierarchy.peers import Peers, is_newer
from intergroup_core.hierarchy.roll import Roll
from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    Acknowledgments,
    CutKey,
    Cuts,
    GlobalControl,
    GroupKey,
    LocalControl,
    Reach,
)

MICROSECOND = 1_000
MAX_SENT = 64
"""Own messages remembered until their echoes come."""
MAX_RUMOURS = 4_096
"""Coordinators that others speak of and this one has not heard."""


class Leadership:
    """Being a coordinator, from the first message to the coordinator group to the last."""

    def __init__(self, me: SiteId, most_children: int, most_fellows: int, silent_until: int, now: int) -> None:
        self._me = me
        self.since = now
        self._silent_until = silent_until
        """Until then it has not listened for long enough to know that it hears of all coordinators."""
        self.children = Peers(most_children)
        self.fellows = Peers(most_fellows)
        self.names: dict[SiteId, str] = {}
        self.local_roll = Roll()
        self.roll = Roll()
        """Who is there in the local group, and anywhere."""
        self.sizes: dict[SiteId, int] = {}
        """Children of fellow coordinators."""
        self._counts: dict[SiteId, int] = {}
        """Coordinators that each fellow counts."""
        self._of_children = Ledger()
        self._of_fellows = Ledger()
        self._from_children: Gathering[LocalControl] = Gathering()
        self._from_fellows: Gathering[GlobalControl] = Gathering()
        self._cuts: dict[SiteId, Cuts] = {}
        self._rumours: dict[SiteId, int] = {}
        """Coordinators that others speak of, until when each is waited for."""
        self._gone: dict[SiteId, tuple[int, int]] = {}
        """Children and fellows that said farewell: the clock of it, and when it came."""
        self._fresh: set[SiteId] = set()
        """Fellows that were heard since this site last stood still."""
        self._sent: dict[int, int] = {}
        self._echoed: dict[SiteId, int] = {}
        """When the message was sent of which each fellow has everything."""
        self._own: Acknowledgments = {}
        self._own_version = 0
        self._group: tuple[tuple[int, int, int], dict[GroupKey, Acknowledgment]] | None = None
        self._system: tuple[tuple[int, int, int], dict[GroupKey, Acknowledgment]] | None = None
        self.news = False
        """Whether somebody said more of what is left of an epoch: others wait for that."""
        self.joined = False
        """Whether a child came, or asked to, since the last look."""
        self.rumour_ns = max(0, silent_until - now)
        """How long a coordinator that somebody heard is waited for."""

    # Children

    def receive_child(self, message: LocalControl, hops: int | None, now: int, *, accepting: bool) -> None:
        site = message.site
        if self._said_before_leaving(site, message.clock):
            return
        if site not in self.children:
            if not accepting:
                return
            self.joined = True
        whole = self._from_children.add(message)
        if whole is None:
            if site in self.children:
                self.children.mentioned(site, now)
            return
        if not self.children.heard(site, message.clock, hops, now):
            return
        self._of_children.put(site, whole.acknowledgments)
        self._put_cuts(site, whole.cuts)
        self.names[site] = message.name
        for roll in (self.roll, self.local_roll):
            roll.said(site, message.name, whole.acknowledgments, now)
        echo = whole.first.echoes.get(self._me)
        if echo is not None:
            self.children.echoed(site, echo, now)

    def child_left(self, site: SiteId, clock: int, now: int) -> None:
        """It said so: it is counted elsewhere, or has no members any more."""
        known = self.children.get(site)
        if known is not None and known.clock is not None and is_newer(known.clock, clock):
            return  # It has come back since.
        self._forget_child(site)
        self._of_children.drop(site)
        self._gone[site] = (clock, now)

    def _said_before_leaving(self, site: SiteId, clock: int) -> bool:
        """Whether a message is older than its speaker's farewell, which overtook it."""
        gone = self._gone.get(site)
        return gone is not None and not is_newer(clock, gone[0])

    def _forget_child(self, site: SiteId) -> None:
        self.local_roll.forget(site)
        self.roll.forget(site)
        self.children.forget(site)
        self._from_children.forget(site)
        self._cuts.pop(site, None)
        self.names.pop(site, None)

    # Fellow coordinators

    def receive_fellow(self, message: GlobalControl, hops: int | None, now: int) -> None:
        site = message.site
        if self._said_before_leaving(site, message.clock):
            return
        whole = self._from_fellows.add(message)
        if whole is None:
            if site in self.fellows:
                self.fellows.mentioned(site, now)
            return
        if not self.fellows.heard(site, message.clock, hops, now):
            return
        first = whole.first
        self._rumours.pop(site, None)
        self._gone.pop(site, None)
        self._fresh.add(site)
        self._of_fellows.put(site, whole.acknowledgments)
        self._put_cuts(site, whole.cuts)
        self.roll.told(first.roll, now)
        self.sizes[site] = first.children
        self._counts[site] = first.coordinators
        for other in first.echoes:
            if other not in self.fellows:
                self.rumour(other, now + self.rumour_ns)
        echo = first.echoes.get(self._me)
        if echo is not None:
            self.fellows.echoed(site, echo, now)
            sent = self._sent.get(echo[0])
            if sent is not None:
                self._echoed[site] = max(self._echoed.get(site, 0), sent)

    def rumour(self, site: SiteId, until: int) -> None:
        """Somebody hears a coordinator: nothing is known of the whole until it is heard here too, or that time."""
        if site == self._me or site in self.fellows or site in self._gone:
            return
        if len(self._rumours) < MAX_RUMOURS or site in self._rumours:
            self._rumours[site] = max(until, self._rumours.get(site, until))

    def fellow_left(self, site: SiteId, clock: int, now: int, *, keep_until: int | None = None) -> None:
        """It is a child now, and counted as such; or it went and left children behind, who still count for a while."""
        known = self.fellows.get(site)
        if known is not None and known.clock is not None and is_newer(known.clock, clock):
            return  # It has become a coordinator again since.
        self._forget_fellow(site)
        if keep_until is None:
            self._of_fellows.drop(site)
        else:
            self._of_fellows.keep(site, keep_until)
        self._rumours.pop(site, None)
        self._gone[site] = (clock, now)

    def _forget_fellow(self, site: SiteId) -> None:
        self.fellows.forget(site)
        self._from_fellows.forget(site)
        self._cuts.pop(site, None)
        self._fresh.discard(site)
        for table in (self.sizes, self._counts, self._echoed):
            table.pop(site, None)

    # Faults

    def forget_silent(self, child_ns: int, fellow_ns: int, grace_ns: int, now: int) -> list[SiteId]:
        """Who is gone; what they acknowledged counts for a grace, while children find a new place (H7)."""
        lost = self.children.silent(child_ns, now)
        for site in lost:
            self._forget_child(site)
            self._of_children.keep(site, now + grace_ns)
        fellows = self.fellows.silent(fellow_ns, now)
        for site in fellows:
            self._forget_fellow(site)
            self._of_fellows.keep(site, now + grace_ns)
            # Where it was only this site that did not hear it, somebody will speak of it.
            self.rumour(site, now + fellow_ns // 2)
        self._of_children.expire(now)
        self._of_fellows.expire(now)
        self.rumour_ns = fellow_ns
        for site in [site for site, until in self._rumours.items() if now > until]:
            del self._rumours[site]
        for site in [site for site, (_, at) in self._gone.items() if now - at > fellow_ns]:
            del self._gone[site]
        return lost + fellows

    def stood_still(self, ns: int, now: int) -> None:
        """Others may have come meanwhile: listen, and be heard by all fellows again, before saying what all have."""
        self._silent_until = max(self._silent_until, now + self.rumour_ns)
        self._fresh.clear()
        self._echoed.clear()
        self.children.excuse(ns)
        self.fellows.excuse(ns)

    # What all have

    def own(self, acknowledgments: Acknowledgments) -> None:
        """This site's own acknowledgments."""
        if acknowledgments != self._own:
            self._own = dict(acknowledgments)
            self._own_version += 1

    @property
    def coordinators(self) -> int:
        return len(self.fellows) + 1

    def knows_all(self, now: int) -> bool:
        """Whether every coordinator that anybody speaks of was heard, and hears this one.

        Whoever hears this one counts nobody without its echo, and has since said so in a message that came here: so
        nobody who is counted by way of it can be missing here.
        """
        return (
            now >= self._silent_until
            and not self._rumours
            and len(self._fresh) == len(self._echoed) == len(self.fellows)
            and self.coordinators >= max(self._counts.values(), default=1)
        )

    def group(self) -> dict[GroupKey, Acknowledgment]:
        """The group acknowledgment: the least of the local group, this site included.

        And of fellows that have failed: a new coordinator did not hear what those acknowledged, and their children are
        still looking for a place, perhaps with it (H7).
        """
        version = (self._own_version, self._of_children.version, self._of_fellows.version)
        if self._group is None or self._group[0] != version:
            tables = (self._own, *self._of_children.tables(), *self._of_fellows.kept())
            self._group = (version, least(tables))
        return self._group[1]

    def holds_for_others(self) -> bool:
        """Whether children, or some that are gone, still count by way of this site."""
        return len(self._of_children) > 0 or len(self.children) > 0

    def system(self, now: int) -> dict[GroupKey, Acknowledgment] | None:
        """The system acknowledgment; None while some coordinator was not heard."""
        if not self.knows_all(now):
            return None
        version = (self._own_version, self._of_children.version, self._of_fellows.version)
        if self._system is None or self._system[0] != version:
            self._system = (version, least((self.group(), *self._of_fellows.tables())))
        return self._system[1]

    def sent(self, clock: int, now: int) -> None:
        """A message to the coordinator group goes, with everything heard until now in it."""
        self._sent[clock] = now
        if len(self._sent) > MAX_SENT:
            self._sent.pop(next(iter(self._sent)))

    def counted_upto(self, now: int) -> int | None:
        """When: whatever had been heard by then is in every coordinator's minimum (D7)."""
        if not self.knows_all(now):
            return None
        return min(self._echoed.values(), default=now)

    def _put_cuts(self, site: SiteId, cuts: Cuts) -> None:
        if cuts:
            self.news |= self._cuts.get(site) != cuts
            self._cuts[site] = cuts
        else:
            self._cuts.pop(site, None)

    def group_cuts(self, own: Cuts) -> dict[CutKey, Reach]:
        return furthest((own, *(cuts for site, cuts in self._cuts.items() if site in self.children)))

    def system_cuts(self, own: Cuts) -> dict[CutKey, Reach]:
        return furthest((own, *self._cuts.values()))

    def heir(self) -> SiteId | None:
        """The child that takes over first: the lowest."""
        return min(self.children, default=None)
