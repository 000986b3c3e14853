"""From place to place: searching, joining, becoming a coordinator or a child, losing one's coordinator (T2.6)."""

from __future__ import annotations

from intergroup_core.effects import CoordinatorGroup
from intergroup_core.hierarchy.attachment import Attachment
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.hierarchy.places import MILLISECOND, Places, Timer
from intergroup_core.hierarchy.search import Found, RingSearch, rings
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import SiteId

SECOND = 1_000_000_000


class Moving(Places):
    """Every transition of T2.6.2; whoever moves is counted in its new place before it leaves the old one (H7)."""

    MAX_YIELDS = 8
    """Times that a starting site lets a lower one go first."""
    QUERY_BYTES = 100
    """About what a question takes on the network."""
    WIDE_FACTOR = 3
    """A ring beyond the boundary waits so many times longer for answers."""

    _attempts = 0
    _bereaved: SiteId | None = None
    """The coordinator that failed this site, until it has another place."""
    _yields = 0
    _setbacks = 0
    """Times in a row that it set out to become a child and found no place."""
    _wide = False

    # Searching

    def _begin_search(self, *, starting: bool, wide: bool, now: int) -> None:
        boundary = min(self._config.boundary_ttl, self._system_ttl)
        first = boundary if wide else 1
        last = self._system_ttl if wide else boundary
        self._attempts += 1
        self._wide = wide
        leaving = self.me if self._lead is not None else None
        if self._attached is not None:
            leaving = self._attached.coordinator
        self._search = RingSearch(
            self.me,
            self._attempts,
            rings(first, max(first, last)),
            round(self._config.ring_ms * MILLISECOND * (self.WIDE_FACTOR if wide else 1)),
            leaving=leaving,
            starting=starting,
            closest_us=None if wide else self._closeness_us,
            crowd_ns=round(
                self.QUERY_BYTES / self._config.bandwidth * 1_000 * MILLISECOND * self._rng.uniform(0.5, 1.5)
            ),
        )
        self._timers.arm(Timer.SEARCH, now)

    def _go_on_searching(self, now: int) -> None:
        search = self._search
        if search is None:
            return
        query = search.tick(now)
        if query is not None:
            self._voice.say(query, CoordinatorGroup(), query.ttl)
        if not search.over:
            self._timers.arm(Timer.SEARCH, search.due_at)
            return
        self._search = None
        if search.found is not None:
            self._join(search.found, now)
        else:
            self._found_nobody(search, now)

    def _join(self, found: Found, now: int) -> None:
        """Be a child of this coordinator: by sending to its local group (T2.6.1)."""
        attachment = Attachment(self.me, found, self.MAX_PEERS, now)
        self._forget_farewell(found.coordinator)
        self._rumoured.clear()
        self._bereaved = None
        self.moves += 1
        match self.state:
            case ControlState.STARTING:
                self._attach(attachment)
                self.state = ControlState.CHILD
            case ControlState.CHILD if self._attached is None:
                self._attach(attachment)
            case ControlState.CHILD | ControlState.TO_CHILD:
                # It is counted there before it leaves where it was (H7).
                self._attach(self._attached, attachment)
            case _:
                return
        self._timers.arm(Timer.LOCAL, now)

    def _found_nobody(self, search: RingSearch, now: int) -> None:
        match self.state:
            case ControlState.STARTING:
                if search.lower is not None and self._yields < self.MAX_YIELDS:
                    self._yields += 1
                    self._begin_search(starting=True, wide=self._wide, now=now)
                elif self._determination.starts_as_coordinator(self._heard_coordinators) or self._wide:
                    self._lead_from(now)
                    self.state = ControlState.COORDINATOR
                else:
                    self._begin_search(starting=True, wide=True, now=now)
            case ControlState.CHILD:
                if self._attached is None and not self._wide and self._crowded():
                    self._begin_search(starting=False, wide=True, now=now)
                else:
                    self._to_coordinator(now)
            case ControlState.TO_CHILD:
                if self._wide or not self._crowded():
                    self._stay_coordinator(now)
                else:
                    self._begin_search(starting=False, wide=True, now=now)
            case _:
                pass

    def _crowded(self) -> bool:
        """Whether there are so many coordinators that a far one is better than one more."""
        heard = self._lead.coordinators if self._lead is not None else self._heard_coordinators
        return not self._determination.starts_as_coordinator(heard)

    # Coordinator to child and back

    def _lead_from(self, now: int) -> None:
        """Join the coordinator group."""
        fault_ns = self._fault_ns(self._global)
        # Who has not listened for as long as others may be silent does not know who there is.
        self._lead = lead = Leadership(self.me, self.MAX_PEERS, self.MAX_PEERS, now + fault_ns, now)
        self._forget_farewell(self.me)
        for site in self._rumoured:
            lead.rumour(site, now + fault_ns)
        for attachment in self._attachments:
            lead.rumour(attachment.coordinator, now + fault_ns)
            for site in attachment.from_coordinator:
                lead.rumour(site, now + fault_ns)
        if self._bereaved is not None:
            # Its other children take themselves for counted until then, and look for a place (H7).
            lead.rumour(self._bereaved, now + self._belief_ns + fault_ns // 2)
        self._bereaved = None
        self._rumoured.clear()
        self._included_at = dict.fromkeys(self._own, now)
        lead.own(self._own)
        self.moves += 1
        self._timers.arm(Timer.GLOBAL, now)
        self._timers.arm(Timer.LOCAL, now + self._local.first())

    def _to_coordinator(self, now: int) -> None:
        self._timers.cancel(Timer.CHANGE)
        self._end_search()
        self._lead_from(now)
        self.state = ControlState.TO_COORDINATOR
        self._finish_promotion(now)

    def _finish_promotion(self, now: int) -> None:
        """Leave the old local group once all coordinators count this site by what it says itself (H7)."""
        lead = self._lead
        assert lead is not None
        if self._attached is not None:
            counted = lead.counted_upto(now)
            waited = now - lead.since > self._belief_ns + self._grace_ns
            if not waited and (counted is None or counted < lead.since):
                return
            self._farewell(self._attached.coordinator, now)
        self._attach(None)
        self.state = ControlState.COORDINATOR

    def _to_child(self, now: int) -> None:
        """Figure 2.4."""
        lead = self._lead
        assert lead is not None
        if len(lead.fellows) == 0 or any(fellow in lead.children for fellow in lead.fellows):
            return
        self.state = ControlState.TO_CHILD
        self._begin_search(starting=False, wide=False, now=now)

    def _give_up_move(self, now: int) -> None:
        """Where it was about to belong is no place any more."""
        if self.state is ControlState.TO_CHILD:
            self._stay_coordinator(now)
        else:
            self._attach(self._attached)

    def _stay_coordinator(self, now: int) -> None:
        self.state = ControlState.COORDINATOR
        self._setbacks += 1
        if self._next is not None:
            self._farewell(self._next.coordinator, now)
        self._attach(None)
        self._end_search()

    def _finish_move(self, now: int) -> None:
        """Leave the old place once every coordinator counts this site by way of the new one."""
        if self._next is None or not self._next.all_counted(self._own, now - self._belief_ns // 2):
            return
        if self.state is ControlState.CHILD:
            assert self._attached is not None
            self._farewell(self._attached.coordinator, now)
        elif self.state is ControlState.TO_CHILD:
            assert self._lead is not None
            if self._lead.holds_for_others():
                return
            self._farewell(self.me, now)
            self._lead = None
            self._timers.cancel(Timer.GLOBAL)
            self._included_at.clear()
            self.state = ControlState.CHILD
            self._setbacks = 0
        self._attach(self._next)

    def _coordinator_leaves(self, coordinator: SiteId, clock: int, now: int) -> None:
        """Look for another one, still telling this one everything until then."""
        if any(place.coordinator == coordinator and place.has_newer_than(clock) for place in self._attachments):
            return
        attached = self._attached
        if self.state is not ControlState.CHILD or attached is None or attached.coordinator != coordinator:
            if self._next is not None and self._next.coordinator == coordinator:
                self._give_up_move(now)
            return
        if self._search is None and self._next is None:
            self._note_coordinators(attached)
            self._begin_search(starting=False, wide=False, now=now)

    def _note_coordinators(self, attachment: Attachment) -> None:
        self._heard_coordinators = attachment.coordinators
        self._rumoured.update(attachment.from_coordinator)
        self._rumoured.discard(attachment.coordinator)

    def _lost_coordinator(self, attached: Attachment, now: int) -> None:
        """Its heir takes over at once; the others look for a place near, where they find it (T2.6.3, P8)."""
        self._note_coordinators(attached)
        if self.state is ControlState.TO_COORDINATOR:
            assert self._lead is not None
            self._lead.rumour(attached.coordinator, now + self._belief_ns + self._fault_ns(self._global) // 2)
            self._attach(None)
            self._finish_promotion(now)
            return
        self._bereaved = attached.coordinator
        if attached.heir == self.me:
            self._to_coordinator(now)
            self._attach(None)
            self._finish_promotion(now)
        else:
            self._attach(None)
            self._end_search()
            self._begin_search(starting=False, wide=False, now=now)
            # Not all at the same moment, and after the heir.
            self._timers.arm(Timer.SEARCH, now + round(self._rng.uniform(0.2, 1.0) * self._interval_ns))

    def _end_search(self) -> None:
        self._search = None
        self._timers.cancel(Timer.SEARCH)
