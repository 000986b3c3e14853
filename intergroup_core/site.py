"""One site: its control process, its group members and the one hybrid clock they share (H1)."""

from __future__ import annotations

from collections.abc import Sequence

from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.outbox import Records
from intergroup_core.effects import Effect
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import LocalProtocolError
from intergroup_core.hierarchy.group import GroupControl
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import Instant
from intergroup_core.timers import earliest
from intergroup_core.wire.parse import Arrival


class Site:
    """Routes by group; the clock is one, so that what a site reads in one group precedes what it sends in another."""

    def __init__(self, control: ControlProcess | None = None, *, clock: HybridClock | None = None) -> None:
        self.clock = clock or HybridClock()
        self.control = control
        self._endpoints: dict[str, Endpoint] = {}

    def control_of(self, group: str, distance_start_ns: int) -> GroupControl | None:
        """The site's control process as a member of a group sees it; None at a site that has none."""
        return None if self.control is None else GroupControl(self.control, group, distance_start_ns)

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        return list(self._endpoints.values())

    def add(self, endpoint: Endpoint, now: Instant) -> list[Effect]:
        """Start a member here; one per group."""
        if endpoint.group in self._endpoints:
            raise LocalProtocolError(f"this site already has a member in group {endpoint.group}; use that one")
        self._endpoints[endpoint.group] = endpoint
        return endpoint.start(now)

    def remove(self, group: str) -> None:
        self._endpoints.pop(group, None)

    def endpoint(self, group: str) -> Endpoint:
        try:
            return self._endpoints[group]
        except KeyError:
            raise LocalProtocolError(f"this site has no member in group {group}; join it first") from None

    def receive(self, group: str, arrival: Arrival, now: Instant) -> list[Effect]:
        return self.endpoint(group).receive(arrival, now)

    def send(self, group: str, records: Records, now: Instant) -> list[Effect]:
        return self.endpoint(group).send(records, now)

    def tick(self, now: Instant) -> list[tuple[str, list[Effect]]]:
        """Time has passed: effects by group."""
        return [
            (group, endpoint.tick(now))
            for group, endpoint in self._endpoints.items()
            if (deadline := endpoint.next_deadline()) is not None and deadline <= now.mono
        ]

    def next_deadline(self) -> int | None:
        return earliest(*(endpoint.next_deadline() for endpoint in self._endpoints.values()))
