"""A simulation said in flags: the same flags and seed give the same run, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from intergroup_core.ids import Service
from intergroup_core.sim.cluster import SimCluster
from intergroup_core.sim.faults import FAULT_NAMES, plan_faults
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_plan import LIVE_FAULT_NAMES, plan_live_faults, plan_seats, slower
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.topology import scattered
from intergroup_core.sim.workload import Workload

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000

FURTHEST_NS = {
    "lan": (100 * MICROSECOND, 500 * MICROSECOND),
    "wan": (10 * MILLISECOND, 80 * MILLISECOND),
    "test": (MILLISECOND, 20 * MILLISECOND),
}
"""The longest delay of a run is drawn from this range, by preset."""
DIRECT = (0, 0, 2, 4, 16)
"""Members up to which all report directly, where there is a hierarchy."""
MIXED = "mixed"
DELIVERIES = (*(service.value for service in Service), MIXED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Every field is a flag of `intergroup sim`; what no flag says is drawn from the seed."""

    seed: int = 1
    members: int = 3
    """In the sender group."""
    receivers: int = 2
    """Beside them."""
    delivery: str = MIXED
    loss: float = 0.0
    burst: float = 1.0
    dup: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    duration: float = 10.0
    messages: int = 0
    """The run goes on after its duration until so many were sent, for four times the duration at most."""
    faults: tuple[str, ...] = ()
    rate: float = 40.0
    size: int = 100
    preset: str = "test"
    quorum: str = "none"
    """Which component may send; with anything but none, whoever goes comes back."""
    hierarchy: bool = False
    """With a control process beside every member; the size of group from which receivers are silent is drawn."""
    log_ms: float = 0.0
    """With a log at every member, which holds what was delivered after so long at most; 0 for none."""
    fixed: bool = False
    """With one view for ever, rather than live membership."""

    def __post_init__(self) -> None:
        for name in ("loss", "dup", "reorder", "corrupt"):
            _require(self, name, 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        _require(self, "members", 1 <= self.members <= 1_000, "from 1 to 1000")
        _require(self, "receivers", 0 <= self.receivers <= 1_000, "from 0 to 1000")
        _require(self, "burst", self.burst >= 1, "at least 1")
        _require(self, "duration", 0 < self.duration <= 86_400, "more than 0 and at most 86400")
        _require(self, "messages", self.messages >= 0, "at least 0")
        _require(self, "rate", 0 < self.rate <= 1e6, "more than 0 and at most 1000000")
        _require(self, "size", 1 <= self.size <= 50_000, "from 1 to 50000")
        _require(self, "delivery", self.delivery in DELIVERIES, f"one of {', '.join(DELIVERIES)}")
        _require(self, "preset", self.preset in FURTHEST_NS, f"one of {', '.join(FURTHEST_NS)}")
        _require(self, "hierarchy", not (self.hierarchy and self.fixed), "left out where the view stays (--fixed)")
        _require(self, "log_ms", 0 <= self.log_ms <= 60_000, "from 0 to 60000")
        _require(self, "log_ms", not (self.log_ms and self.fixed), "left out where the view stays (--fixed)")
        known = FAULT_NAMES if self.fixed else LIVE_FAULT_NAMES
        for fault in self.faults:
            _require(self, "faults", fault in known, f"made of {', '.join(known)}")

    @property
    def duration_ns(self) -> int:
        return round(self.duration * SECOND)

    def command(self) -> str:
        """What to type to see exactly this run again."""
        said = [f"intergroup sim --seed {self.seed}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "seed" or value == field.default:
                continue
            if isinstance(value, bool):
                said.append(f"--{field.name}")
            else:
                said.append(f"--{field.name} {','.join(value) if isinstance(value, tuple) else value}")
        return " ".join(said)

    def cluster(self) -> SimCluster | LiveCluster:
        """The members, network and faults of this run, not started yet."""
        return self._fixed_cluster() if self.fixed else self._live_cluster()

    def seats(self) -> list[Seat]:
        """Who is there, and when, in a group with live membership."""
        return self._live_cluster().seats

    def _live_cluster(self) -> LiveCluster:
        rng = Random(f"{self.seed}/live")
        least, most = FURTHEST_NS[self.preset]
        furthest = rng.randint(least, most)
        config = Config.preset(self.preset)
        if self.preset == "test" and rng.random() < 0.95:
            config = slower(config, rng)
        config = replace(config, group=replace(config.group, quorum=self.quorum))
        if self.hierarchy:
            direct = Random(f"{self.seed}/direct").choice(DIRECT)
            config = replace(config, report=replace(config.report, direct_members=direct))
        seats = plan_seats(
            self._services(self.members + self.receivers, rng),
            senders=self.members,
            faults=self.faults,
            duration_ns=self.duration_ns,
            rng=rng,
        )
        return LiveCluster(
            seed=self.seed,
            seats=seats,
            config=config,
            conditions=self._conditions(furthest, rng),
            delays=scattered(len(seats), rng, nearest_ns=furthest // 10, furthest_ns=furthest),
            faults=plan_live_faults(
                self.faults,
                seats=len(seats),
                duration_ns=self.duration_ns,
                rng=rng,
                all_return=self.quorum != "none",
            ),
            workload=self._workload(config, rng),
            true_distances=rng.random() < 0.7,
            hierarchy=self.hierarchy,
            log_ns=round(self.log_ms * MILLISECOND),
            resolution_ns=rng.choice((MICROSECOND, MILLISECOND, 16 * MILLISECOND)),
            skew_ns=rng.choice((0, MILLISECOND, 50 * MILLISECOND, 2 * SECOND)),
            wake_ns=rng.choice((200 * MICROSECOND, *3 * (5 * MILLISECOND, 10 * MILLISECOND))),
        )

    def _fixed_cluster(self) -> SimCluster:
        rng = Random(f"{self.seed}/scenario")
        count = self.members + self.receivers
        least, most = FURTHEST_NS[self.preset]
        furthest = rng.randint(least, most)
        config = self._config(rng)
        return SimCluster(
            seed=self.seed,
            senders=self.members,
            receivers=self.receivers,
            services=self._services(count, rng),
            config=config,
            conditions=self._conditions(furthest, rng),
            delays=scattered(count, rng, nearest_ns=furthest // 10, furthest_ns=furthest),
            faults=plan_faults(self.faults, members=count, duration_ns=self.duration_ns, rng=rng),
            workload=self._workload(config, rng),
            busy=rng.choice(((1.0,), (1.8, 1.0, 0.2))),
            true_distances=rng.random() < 0.7,
            # Coarse clocks make equal timestamps, exact ones make races.
            resolution_ns=rng.choice((MICROSECOND, MILLISECOND, 16 * MILLISECOND)),
            skew_ns=rng.choice((0, MILLISECOND, 50 * MILLISECOND)),
            wake_ns=rng.choice((200 * MICROSECOND, 2 * MILLISECOND, 5 * MILLISECOND)),
        )

    def _conditions(self, furthest: int, rng: Random) -> Conditions:
        return Conditions(
            loss=self.loss,
            mean_burst=self.burst,
            duplicate=self.dup,
            reorder=self.reorder,
            reorder_ns=2 * furthest,
            corrupt=self.corrupt,
            jitter_ns=rng.choice((0, furthest // 10, furthest)),
            coalesce=rng.choice((0.0, 0.7, 1.0)),
        )

    def _workload(self, config: Config, rng: Random) -> Workload:
        return Workload(
            rate=self.rate,
            size=self.size,
            large_size=min(50 * self.size, config.group.max_message_bytes),
            answer=rng.choice((0.0, 0.02)),
            duty=rng.choice((0.2, 0.4, 0.8)),
            step_ns=rng.choice((0, 0, 20 * MILLISECOND)),
        )

    def _config(self, rng: Random) -> Config:
        config = Config.preset(self.preset)
        if self.preset != "test":
            return config
        # Every second run has timers that tick less often: what happens between them costs less to simulate.
        gap_us, busy_ms = rng.choice(((1_000.0, 20.0), (5_000.0, 100.0), (30_000.0, 200.0), (30_000.0, 200.0)))
        return replace(
            config,
            send=replace(config.send, keepalive_gap_us=gap_us),
            report=replace(config.report, busy_ms=busy_ms),
        )

    def _services(self, count: int, rng: Random) -> list[Service]:
        if self.delivery != MIXED:
            return [Service(self.delivery)] * count
        # All three at work as far as there are members, rto twice so that there is an order to compare.
        services = [Service.RTO, Service.RSO, Service.UU, Service.RTO]
        services += [rng.choice(list(Service)) for _ in range(count - len(services))]
        services = services[:count]
        rng.shuffle(services)
        return services


def _require(scenario: Scenario, name: str, holds: bool, allowed: str) -> None:
    if not holds:
        value = getattr(scenario, name)
        shown = ",".join(value) if isinstance(value, tuple) else value
        raise ConfigError(f"--{name} is {shown}; it must be {allowed}")
