"""A whole group in one process: production endpoints on simulated clocks, network, sockets and applications."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import MemberId, Service, View, ViewId, timestamp_at
from intergroup_core.ports import ConstantDistance, Distances
from intergroup_core.sim.checkers import Violation, check
from intergroup_core.sim.clock import START_WALL_NS, MemberClock
from intergroup_core.sim.faults import ClockStep, Congestion, Crash, Fault, Partition, Pause, SlowApplication
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.network import Conditions, Network
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.topology import Delays, scattered
from intergroup_core.sim.trace import Ended, Trace, TracedMember
from intergroup_core.sim.wiretap import WireTap
from intergroup_core.sim.workload import Application, Workload

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
QUIET_LIMIT_NS = 20 * SECOND
"""How long a quiet network may take to deliver and drain everything."""
QUIET_STEP_NS = 50 * MILLISECOND
GROUP = "sim"


class TrueDistances:
    """A distance port that knows the delay matrix."""

    def __init__(self, network: Network, me: int, indices: dict[MemberId, int]) -> None:
        self._network = network
        self._me = me
        self._indices = indices

    def to(self, member: MemberId) -> int:
        index = self._indices.get(member)
        return 0 if index is None else self._network.delay(self._me, index)


class SimCluster:
    """Senders first, then receivers; everything random comes from the seed.

    `skew_ns` is how far wall clocks are off, `resolution_ns` how coarse they are, `wake_ns` how long a member takes
    to turn to what arrived. `run` plays the workload and the faults, then leaves the network quiet until everything
    should have arrived, and holds the trace to the properties.
    """

    def __init__(
        self,
        *,
        seed: int,
        senders: int,
        receivers: int = 0,
        services: Sequence[Service] = (Service.RTO,),
        config: Config | None = None,
        conditions: Conditions | None = None,
        delays: Delays | None = None,
        faults: Sequence[Fault] = (),
        workload: Workload | None = None,
        busy: Sequence[float] = (1.0,),
        true_distances: bool = True,
        skew_ns: int = 30 * MILLISECOND,
        resolution_ns: int = 1_000,
        wake_ns: int = 200_000,
        quiet_limit_ns: int = QUIET_LIMIT_NS,
    ) -> None:
        self.seed = seed
        self._wake_ns = wake_ns
        self._quiet_limit_ns = quiet_limit_ns
        self.config = config or Config.test()
        self.scheduler = Scheduler()
        count = senders + receivers
        rng = Random(f"{seed}/cluster")
        self.delays = delays or scattered(count, rng, nearest_ns=MILLISECOND, furthest_ns=10 * MILLISECOND)
        self.network = Network(self.scheduler, Random(f"{seed}/network"), self.delays, conditions or Conditions())
        ids = _some_ids(rng, count)
        self.services = [services[index % len(services)] for index in range(count)]
        traced = [
            TracedMember(
                id=member,
                name=f"{'s' if index < senders else 'r'}{index}",
                service=self.services[index],
                sender=index < senders,
                counted=index < senders or self.services[index] is not Service.UU,
            )
            for index, member in enumerate(ids)
        ]
        self.trace = Trace(traced, seed)
        self.tap = WireTap(self.trace)
        self.network.on_drop = self.tap.dropped
        self.recoveries: list[tuple[int, MemberId, MemberId, int, int]] = []
        """(when, member, source, waited, distance) of every loss that was made good, in nanoseconds."""
        self.view = _view(ids[:senders], traced)
        indices = {member: index for index, member in enumerate(ids)}
        self.members = [
            self._member(
                member,
                TrueDistances(self.network, index, indices)
                if true_distances
                else ConstantDistance(round(self.config.repair.distance_start_us * 1_000)),
                MemberClock(
                    self.scheduler,
                    mono_base=rng.getrandbits(40),
                    wall_offset_ns=rng.randint(-skew_ns, skew_ns),
                    resolution_ns=resolution_ns,
                ),
            )
            for index, member in enumerate(traced)
        ]
        for index, member in enumerate(self.members[:senders]):
            member.application = Application(
                workload or Workload(),
                self.scheduler,
                Random(f"{seed}/application/{index}"),
                member.send,
                busy=busy[index % len(busy)],
            )
        self._plan(faults)
        self._started = False
        self.ended = False
        """Whether the quiet phase is over."""

    def _member(self, member: TracedMember, distances: Distances, clock: MemberClock) -> SimMember:
        def recovered(source: MemberId, waited_ns: int, distance_ns: int) -> None:
            self.recoveries.append((self.scheduler.now, member.id, source, waited_ns, distance_ns))

        endpoint = Endpoint(
            me=member.id,
            name=member.name,
            group=GROUP,
            view=self.view,
            counted=frozenset(other.id for other in self.trace.members if other.counted),
            service=member.service,
            config=self.config,
            clock=HybridClock(),
            distances=distances,
            rng=Random(f"{self.seed}/endpoint/{member.name}"),
            recovered=recovered,
        )
        return SimMember(
            id=member.id,
            name=member.name,
            service=member.service,
            sender=member.sender,
            endpoint=endpoint,
            clock=clock,
            scheduler=self.scheduler,
            network=self.network,
            trace=self.trace,
            tap=self.tap,
            rng=Random(f"{self.seed}/member/{member.name}"),
            socket_bytes=self.config.network.socket_buffer_bytes,
            app_queue_bytes=self.config.network.app_queue_bytes,
            wake_ns=self._wake_ns,
        )

    def _plan(self, faults: Sequence[Fault]) -> None:
        at = self.scheduler.at
        for fault in faults:
            match fault:
                case Crash():
                    at(fault.at, self.members[fault.member].crash)
                case Pause():
                    at(fault.at, self.members[fault.member].pause)
                    at(fault.until, self.members[fault.member].resume)
                case Partition():
                    at(fault.at, self.network.cut, fault.links())
                    at(fault.until, self.network.heal, fault.links())
                case SlowApplication():
                    at(fault.at, self.members[fault.member].stop_reading)
                    at(fault.until, self.members[fault.member].resume_reading)
                case Congestion():
                    at(fault.at, self.members[fault.member].refuse_sending)
                    at(fault.until, self.members[fault.member].accept_sending)
                case ClockStep():
                    at(fault.at, self.members[fault.member].clock.step, fault.delta_ns)

    @property
    def sent(self) -> int:
        return sum(member.endpoint.counters.messages_sent for member in self.members)

    def start(self, *, applications: bool = True) -> None:
        if self._started:
            return
        self._started = True
        for member in self.members:
            member.start()
            if applications and member.application is not None:
                member.application.start()

    def run_for(self, duration_ns: int) -> None:
        self.scheduler.run_until(self.scheduler.now + duration_ns)

    def run(self, duration_ns: int) -> list[Violation]:
        """The whole play: work and faults, quiet, judgment."""
        self.start()
        self.run_for(duration_ns)
        self.settle()
        return check(self.trace)

    def settle(self) -> None:
        """Stop the applications, heal the network, and wait until everything has arrived, or long enough."""
        for member in self.members:
            if member.application is not None:
                member.application.stop()
            member.resume()
            member.resume_reading()
            member.accept_sending()
        self.network.conditions = self.network.conditions.quiet()
        self.network.heal_all()
        end = self.scheduler.now + self._quiet_limit_ns
        while self.scheduler.now < end and not self._settled():
            self.run_for(QUIET_STEP_NS)
        self.ended = True
        for member in self.members:
            if member.alive:
                self.trace.events.append(
                    Ended(
                        self.scheduler.now,
                        member.id,
                        member.connected,
                        member.endpoint.buffered_bytes,
                        member.endpoint.unsent_bytes,
                    )
                )

    def _settled(self) -> bool:
        """Whether nothing is left to wait for; the checkers say whether that was enough."""
        sent = self.sent
        return all(
            not member.inbox
            and member.endpoint.buffered_bytes == 0
            and member.endpoint.unsent_bytes == 0
            and (member.service is Service.UU or member.delivered_count == sent)
            for member in self.members
        )


def _some_ids(rng: Random, count: int) -> list[MemberId]:
    # Half of them have the upper bit set: ids compare unsigned.
    ids = sorted({rng.getrandbits(63) for _ in range(count)} | {1})[:count]
    return [MemberId(member | (index & 1) << 63) for index, member in enumerate(rng.sample(ids, count))]


def _view(senders: Sequence[MemberId], members: Sequence[TracedMember]) -> View:
    leader = min(senders)
    return View(
        id=ViewId(timestamp_at(START_WALL_NS - SECOND), leader, 0),
        members=tuple(senders),
        names=tuple(member.name for member in members if member.sender),
    )
