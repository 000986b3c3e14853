"""Whether to become a coordinator or a child: a control process looks, waits, and looks again (T2.5)."""

from __future__ import annotations

from intergroup_core.hierarchy.determination import Appropriateness, ChildSituation, CoordinatorSituation
from intergroup_core.hierarchy.knowledge import Knowledge
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.hierarchy.places import Timer
from intergroup_core.hierarchy.states import ControlState


class Deciding(Knowledge):
    """What the tables are asked, and when; never in the middle of a change."""

    OVERFULL = 1.25
    """Children beyond the target up to which a coordinator says that it takes more, as a factor."""
    MERGE_PARTS = 2
    """Two local groups merge where together they fill one such part of the target at most."""
    FAR_FACTOR = 1.5
    """A child whose coordinator is farther away than a near one by this factor is far from it: without a difference
    between the two it would become a coordinator that is close to another, and a child again."""
    MAX_BACKOFF = 2
    """Doublings of the time before it tries again to become a child."""

    _planned: Appropriateness | None = None

    def _determine(self, now: int) -> None:
        """T2.5: decide, wait, look again; never in the middle of a change."""
        if Timer.CHANGE in self._timers or self._search is not None or self._next is not None:
            return
        planned = self._appropriateness()
        if planned is not None and self._goes_on(planned):
            self._planned = planned
            if self._lead is not None:
                self._lead.joined = False
            patience = 1 << min(self._setbacks, self.MAX_BACKOFF) if self._lead is not None else 1
            self._timers.arm(Timer.CHANGE, now + patience * self._determination.delay(planned))

    def _second_look(self, now: int) -> None:
        planned, self._planned = self._planned, None
        if planned is None or self._search is not None or self._next is not None:
            return
        if self.state is ControlState.COORDINATOR:
            assert self._lead is not None
            if not self._lead.joined and self._appropriateness() is planned and self._goes_on(planned):
                self._to_child(now)
        elif self.state is ControlState.CHILD and self._goes_on(planned) and self._appropriateness() is planned:
            # Another one from near may have been quicker: then there is a place, and no need for one more coordinator.
            self._begin_search(starting=False, wide=False, now=now)

    def _goes_on(self, appropriateness: Appropriateness) -> bool:
        if self.state is ControlState.COORDINATOR:
            return self._determination.coordinator_goes_on(appropriateness, self.coordinators, self._smaller_fellows())
        return self._determination.child_goes_on(appropriateness, self.coordinators)

    def _smaller_fellows(self) -> int:
        """Coordinators with fewer children: if some must go, they do."""
        lead = self._lead
        assert lead is not None
        mine = (len(lead.children), self.me)
        return sum((lead.sizes.get(site, 0), site) < mine for site in lead.fellows)

    def _appropriateness(self) -> Appropriateness | None:
        if self.state is ControlState.COORDINATOR and self._lead is not None:
            return self._determination.of_coordinator(self._coordinator_situation(self._lead))
        if self.state is ControlState.CHILD and self._attached is not None:
            attached = self._attached
            distance, hops = attached.distance_us, attached.hops
            far = distance is not None and distance > self.FAR_FACTOR * self._closeness_us
            situation = ChildSituation(
                coordinators=attached.coordinators,
                siblings=attached.children,
                far=far or (hops is not None and hops > self._config.boundary_ttl),
            )
            return self._determination.of_child(situation)
        return None

    def _coordinator_situation(self, lead: Leadership) -> CoordinatorSituation:
        children = len(lead.children)
        most = self._config.local_target // self.MERGE_PARTS
        room = self.OVERFULL * self._config.local_target
        close = fits = False
        for site, known in lead.fellows.items():
            if known.distance_us is None or known.distance_us > self._closeness_us:
                continue
            size = lead.sizes.get(site, 0)
            if size >= room or (size, site) < (children, self.me):
                continue  # It would not take this site, or is the one that goes.
            close = True
            if size + children + 1 <= most:
                fits = True
        return CoordinatorSituation(coordinators=lead.coordinators, children=children, close=close, fits=fits)
