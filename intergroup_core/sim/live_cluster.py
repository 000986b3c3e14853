"""A whole group with live membership in one process: members come, go, fail and return while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.hierarchy.group import GroupControl
from intergroup_core.ids import MemberId, Service, format_member
from intergroup_core.ports import ConstantDistance, Distances
from intergroup_core.sim.adversary import Rule
from intergroup_core.sim.checkers import Violation, check
from intergroup_core.sim.clock import MemberClock
from intergroup_core.sim.cluster import GROUP, MILLISECOND, SECOND, TrueDistances
from intergroup_core.sim.control import ControlNetwork, SimControl
from intergroup_core.sim.faults import Change, Fault, Split
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.network import Conditions, Link, Network
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.slow_log import SlowLog
from intergroup_core.sim.topology import Delays, scattered
from intergroup_core.sim.trace import Ended, Trace
from intergroup_core.sim.troubles import arrange
from intergroup_core.sim.wiretap import WireTap
from intergroup_core.sim.workload import Application, Workload

QUIET_LIMIT_NS = 40 * SECOND
"""How long a quiet network may take to agree on one view, deliver and drain."""
QUIET_STEP_NS = 50 * MILLISECOND
CALM_STEPS = 10
"""Quiet steps in a row after which nothing more is expected to happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a process runs, and what it does there whenever it is started."""

    name: str
    service: Service = Service.RTO
    sender: bool = True
    """Joins the sender group; a receiver may still begin to send."""
    joins_at: int | None = 0
    """None: when it is told to."""
    busy: float = 1.0
    """How much its application sends, relative to the workload; 0 is a silent sender."""
    site: str = ""
    skew_ns: int | None = None
    """How far its wall clock is off; drawn from the seed where not given."""


class LiveCluster:
    """Seats by index, each with the process that runs there, if any; everything random comes from the seed.

    Processes join as their seats say or by `join`; the faults of a plan, or the methods of the same names, do the
    rest. `settle` ends all trouble and waits until the group is at rest.
    """

    def __init__(
        self,
        *,
        seed: int,
        seats: Sequence[Seat] | None = None,
        senders: int = 3,
        receivers: int = 0,
        services: Sequence[Service] = (Service.RTO,),
        config: Config | None = None,
        conditions: Conditions | None = None,
        delays: Delays | None = None,
        faults: Sequence[Fault | Change] = (),
        workload: Workload | None = None,
        true_distances: bool = True,
        hierarchy: bool = False,
        log_ns: int = 0,
        skew_ns: int = 30 * MILLISECOND,
        resolution_ns: int = 1_000,
        wake_ns: int = 200_000,
        quiet_limit_ns: int = QUIET_LIMIT_NS,
    ) -> None:
        self.seed = seed
        self.seats = list(seats) if seats is not None else some_seats(senders, receivers, services)
        self.config = config or Config.test()
        self.scheduler = Scheduler()
        self._rng = Random(f"{seed}/cluster")
        count = len(self.seats)
        self.delays = delays or scattered(count, self._rng, nearest_ns=MILLISECOND, furthest_ns=10 * MILLISECOND)
        self.network = Network(self.scheduler, Random(f"{seed}/network"), self.delays, conditions or Conditions())
        self.trace = Trace((), seed, live=True)
        self.tap = WireTap(self.trace)
        self.network.on_drop = self.tap.dropped
        self.store: dict[str, bytes] = {}
        """What each site made durable."""
        self.ledgers: dict[str, bytes] = {}
        """What each site remembers of ordered statements."""
        self.on_join: Callable[[LiveMember], None] = lambda member: None
        """Told of every process before it starts."""
        self.processes: list[LiveMember] = []
        """All that ever ran, in the order of their starts."""
        self.recoveries: list[tuple[int, int]] = []
        """Of every loss that was made good: when it was, and how long it had been known."""
        self.settling_ns = 0
        """Time from the end of all trouble until connected senders were in one view of themselves, for good."""
        self.ended = False
        """Whether the quiet phase is over."""
        self._running: list[LiveMember | None] = [None] * count
        self._indices: dict[MemberId, int] = {}
        self._workload = workload or Workload()
        self._true_distances = true_distances
        self.control = ControlNetwork(self.scheduler, self.network) if hierarchy else None
        """The control hierarchy of the processes, where they have one; then it measures the distances."""
        self._log_ns = log_ns
        """How long a member's log takes at most until it holds what was delivered; 0 where there is none."""
        self._skew_ns = skew_ns
        self._resolution_ns = resolution_ns
        self._wake_ns = wake_ns
        self._quiet_limit_ns = quiet_limit_ns
        self._applications = True
        for index, seat in enumerate(self.seats):
            if seat.joins_at is not None:
                self.scheduler.at(seat.joins_at, self.join, index)
        arrange(self, faults)

    # Who is there

    def __getitem__(self, index: int) -> LiveMember:
        """The process at a seat, or the last that was there."""
        member = self._running[index]
        assert member is not None, f"nobody was started at seat {index}"
        return member

    @property
    def members(self) -> list[LiveMember]:
        """The last process of every seat that had one."""
        return [member for member in self._running if member is not None]

    @property
    def alive(self) -> list[LiveMember]:
        return [member for member in self.members if member.alive]

    @property
    def sent(self) -> int:
        return sum(member.endpoint.counters.messages_sent for member in self.processes)

    def name_of(self, member: MemberId) -> str:
        index = self._indices.get(member)
        return format_member(member) if index is None else f"{self.seats[index].name}/{format_member(member)[:4]}"

    # What members do

    def join(self, index: int) -> LiveMember:
        """Start a process at a seat where none runs."""
        running = self._running[index]
        if running is not None and running.alive:
            return running
        seat, life = self.seats[index], sum(member.index == index for member in self.processes)
        rng = self._rng
        skew = rng.randint(-self._skew_ns, self._skew_ns) if seat.skew_ns is None else seat.skew_ns
        clock = MemberClock(
            self.scheduler, mono_base=rng.getrandbits(40), wall_offset_ns=skew, resolution_ns=self._resolution_ns
        )
        me = MemberId(rng.getrandbits(64) | 1)
        self._indices[me] = index
        site = seat.site or seat.name
        control = self._control_of(index, life, clock)
        here = None if control is None else GroupControl(control.process, GROUP, self._distance_start_ns)

        def recovered(source: MemberId, waited_ns: int, distance_ns: int) -> None:
            self.recoveries.append((self.scheduler.now, waited_ns))

        log = None
        if self._log_ns and seat.service is not Service.UU:
            log = SlowLog(self.scheduler, Random(f"{self.seed}/log/{seat.name}/{life}"), self._log_ns)
        endpoint = Endpoint(
            me=me,
            name=seat.name,
            group=GROUP,
            service=seat.service,
            config=self.config,
            clock=HybridClock(),
            distances=self._distances_of(index, here),
            control=here,
            rng=Random(f"{self.seed}/endpoint/{seat.name}/{life}"),
            sender=seat.sender,
            site=site,
            record=self.store.get(site),
            recovered=recovered,
            logged=self._log_ns > 0,
            archive=log,
            ledger=self.ledgers.get(site, b""),
        )
        member = LiveMember(
            wants_to_send=seat.sender,
            named=lambda id, member: self._indices.__setitem__(id, member.index),  # noqa: A006
            persist=lambda record: self.store.__setitem__(site, record),
            control=control,
            site=site,
            quorum=self.config.group.quorum != "none",
            id=me,
            name=seat.name,
            service=seat.service,
            sender=seat.sender,
            endpoint=endpoint,
            clock=clock,
            scheduler=self.scheduler,
            network=self.network,
            trace=self.trace,
            tap=self.tap,
            rng=Random(f"{self.seed}/member/{seat.name}/{life}"),
            socket_bytes=self.config.network.socket_buffer_bytes,
            app_queue_bytes=self.config.network.app_queue_bytes,
            wake_ns=self._wake_ns,
            index=index,
            log=log,
        )
        self._running[index] = member
        self.processes.append(member)
        self.on_join(member)
        member.start()
        if seat.sender and seat.busy and self._applications:
            self.start_sending(index)
        return member

    @property
    def _distance_start_ns(self) -> int:
        return round(self.config.repair.distance_start_us * 1_000)

    def _distances_of(self, index: int, here: GroupControl | None) -> Distances:
        if here is not None:
            return here.distances
        if self._true_distances:
            return TrueDistances(self.network, index, self._indices)
        return ConstantDistance(self._distance_start_ns)

    def _control_of(self, index: int, life: int, clock: MemberClock) -> SimControl | None:
        if self.control is None:
            return None
        return SimControl(
            index=index,
            name=self.seats[index].name,
            config=self.config.hierarchy,
            clock=clock,
            net=self.control,
            rng=Random(f"{self.seed}/control/{self.seats[index].name}/{life}"),
        )

    def start_sending(self, index: int) -> None:
        """The application at a seat begins to send, whatever the member is so far."""
        member, seat = self._running[index], self.seats[index]
        if member is None or not member.alive or member.application is not None or self.ended:
            return
        member.application = Application(
            self._workload,
            self.scheduler,
            Random(f"{self.seed}/application/{seat.name}/{len(self.processes)}"),
            member.send,
            busy=seat.busy or 1.0,
        )
        member.application.start()

    def leave(self, index: int) -> None:
        self.at_seat(index, LiveMember.leave)

    def crash(self, index: int) -> None:
        self.at_seat(index, LiveMember.crash)

    def restart(self, index: int) -> None:
        """Start a seat's process again, if it crashed or left; one that is still leaving goes first."""
        running = self._running[index]
        if running is not None and running.alive and running.leaving and not self.ended:
            self.scheduler.after(QUIET_STEP_NS, self.restart, index)
        elif running is not None:
            self.join(index)

    def at_seat(self, index: int, act: Callable[[LiveMember], object]) -> None:
        """Do something to the process at a seat, if one is alive there."""
        member = self._running[index]
        if member is not None and member.alive:
            act(member)

    # What happens to them

    def cut(self, links: set[Link]) -> None:
        self._disturb(links)
        self.network.cut(links)

    def heal(self, links: set[Link]) -> None:
        self._disturb(links)
        self.network.heal(links)

    def oppose(self, rule: Rule) -> None:
        self._disturb(set(rule.links))
        self.network.oppose(rule)

    def relent(self, rule: Rule) -> None:
        self._disturb(set(rule.links))
        self.network.relent(rule)

    def _disturb(self, links: set[Link]) -> None:
        for index in sorted({index for link in links for index in link}):
            self.at_seat(index, LiveMember.disturbed)

    def split(self, *parts: Sequence[int]) -> None:
        """Cut the network into parts until it is healed."""
        self.cut(Split(at=0, until=0, parts=tuple(map(frozenset, parts))).links())

    def heal_all(self) -> None:
        count = range(len(self.seats))
        self._disturb({(one, other) for one in count for other in count})
        self.network.heal_all()

    # Time

    def start(self) -> None:
        """Seats tell when their processes start; nothing is left to do."""

    def run_for(self, duration_ns: int) -> None:
        self.scheduler.run_until(self.scheduler.now + duration_ns)

    def run_until(self, holds: Callable[[], bool], limit_ns: int = 20 * SECOND) -> bool:
        """Run in small steps until something holds; False where the limit came first."""
        end = self.scheduler.now + limit_ns
        while not holds():
            if self.scheduler.now >= end:
                return False
            self.run_for(MILLISECOND)
        return True

    def run(self, duration_ns: int) -> list[Violation]:
        """The whole play: work and faults, quiet, judgment."""
        self.run_for(duration_ns)
        self.settle()
        return check(self.trace)

    def settle(self) -> None:
        """Stop the applications, end all trouble, and wait until the group is at rest, or long enough."""
        self._applications = False
        for member in self.alive:
            if member.application is not None:
                member.application.stop()
            member.resume()
            member.resume_reading()
            member.accept_sending()
        self.network.conditions = self.network.conditions.quiet()
        self.heal_all()
        began = self.scheduler.now
        end, calm = began + self._quiet_limit_ns, 0
        self.settling_ns = 0
        while self.scheduler.now < end and calm < CALM_STEPS:
            self.run_for(QUIET_STEP_NS)
            if not self.agreed():
                self.settling_ns = self.scheduler.now - began
            calm = calm + 1 if self._at_rest() else 0
        self.ended = True
        for member in self.alive:
            end_of = Ended(
                self.scheduler.now,
                member.id,
                member.connected,
                member.endpoint.buffered_bytes,
                member.endpoint.unsent_bytes,
                member.means_to_send,
            )
            self.trace.events.append(end_of)

    def agreed(self) -> bool:
        """Whether all that follow views are in one, of exactly the senders that are there."""
        senders = {member.id for member in self.alive if member.means_to_send}
        views = [member.endpoint.view for member in self._following()]
        if not senders:
            return all(member.state == "receiver" or member.service is Service.UU for member in self.alive)
        return all(view is not None and set(view.members) == senders for view in views) and (
            len({view.id for view in views if view is not None}) <= 1
        )

    def _following(self) -> Iterator[LiveMember]:
        for member in self.alive:
            if member.service is not Service.UU or member.means_to_send:
                yield member

    def _at_rest(self) -> bool:
        """Whether nothing is left to wait for; the checkers say whether that was enough."""
        return self.agreed() and all(
            member.state in ("sender", "receiver")
            and member.endpoint.buffered_bytes == 0
            and member.endpoint.unsent_bytes == 0
            for member in self.alive
        )


def some_seats(senders: int, receivers: int, services: Sequence[Service]) -> list[Seat]:
    """Senders first, then receivers, all there from the start."""
    return [
        Seat(
            name=f"{'s' if index < senders else 'r'}{index}",
            service=services[index % len(services)],
            sender=index < senders,
            joins_at=index * 10 * MILLISECOND,
        )
        for index in range(senders + receivers)
    ]
