"""A simulation of the control hierarchy alone, said in flags: the same flags and seed give the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from random import Random

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from intergroup_core.presets import PRESETS
from intergroup_core.sim.control_site import SECOND
from intergroup_core.sim.sites import SimSites
from intergroup_core.sim.terrain import Clustered, Scattered, Terrain
from intergroup_core.sim.upheavals import MAKERS

TERRAINS = ("clustered", "scattered")
MIN_CLUSTERS, CLUSTER_SITES = 10, 100
"""Clusters at least, and sites in each where there are more, unless somebody says how many there are."""
LAGGARDS = 30
"""Members that are behind, each by a time of its own; every site of a small system."""
START_S, MOST_A_SECOND = 10.0, 300
"""Sites start one after another within this time, but no more of them in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyScenario:
    """Every field is a flag of `intergroup sim --sites`; what no flag says is drawn from the seed."""

    sites: int = 100
    seed: int = 1
    duration: float = 10.0
    """Virtual seconds of trouble, before it is left in peace; or of rest that is looked at, where there is none."""
    loss: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    faults: tuple[str, ...] = ()
    terrain: str = "clustered"
    clusters: int = 0
    """0 for as many as have a hundred sites each, at least ten."""
    preset: str = "wan"
    groups: int = 1
    at_once: bool = False
    """All sites start at the same instant."""

    def __post_init__(self) -> None:
        for name in ("loss", "dup", "reorder"):
            self._require(name, 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        self._require("sites", 1 <= self.sites <= 20_000, "from 1 to 20000")
        self._require("duration", 0 < self.duration <= 86_400, "more than 0 and at most 86400")
        self._require("terrain", self.terrain in TERRAINS, f"one of {', '.join(TERRAINS)}")
        self._require("clusters", 0 <= self.clusters <= self.sites, "from 0 to as many as there are sites")
        self._require("preset", self.preset in PRESETS, f"one of {', '.join(PRESETS)}")
        self._require("groups", 1 <= self.groups <= 1_000, "from 1 to 1000")
        for fault in self.faults:
            self._require("faults", fault in MAKERS, f"made of {', '.join(MAKERS)}")

    def _require(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            value = getattr(self, name)
            said = ",".join(value) if isinstance(value, tuple) else value
            raise ConfigError(f"--{name} is {said}; it must be {allowed}")

    def command(self) -> str:
        """What to type to see exactly this run again."""
        said = [f"intergroup sim --sites {self.sites} --seed {self.seed}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("seed", "sites") or value == field.default:
                continue
            flag = f"--{field.name.replace('_', '-')}"
            if isinstance(value, bool):
                said.append(flag)
            else:
                said.append(f"{flag} {','.join(value) if isinstance(value, tuple) else value}")
        return " ".join(said)

    def build(self, progress: Callable[[str], None] | None = None) -> SimSites:
        """The sites, started as this run starts them."""
        rng = Random(f"{self.seed}/hierarchy")
        sites = SimSites(
            terrain=self._terrain(rng),
            seed=self.seed,
            config=Config.preset(self.preset).hierarchy,
            loss=self.loss,
            dup=self.dup,
            reorder=self.reorder,
            groups=self.groups,
            progress=progress,
        )
        behind = set(rng.sample(range(self.sites), min(LAGGARDS, self.sites)))
        starting_s = max(min(START_S, 0.1 * self.sites), self.sites / MOST_A_SECOND)
        between = 0 if self.at_once else round(starting_s * SECOND) // self.sites
        for index in range(self.sites):
            lag_ns = rng.randrange(1, 2 * SECOND) if index in behind else 0
            sites.scheduler.at(index * between, lambda lag_ns=lag_ns: sites.add(lag_ns=lag_ns))
        sites.run(self.sites * between / SECOND)
        return sites

    def _terrain(self, rng: Random) -> Terrain:
        places = 2 * self.sites + 1
        if self.terrain == "scattered":
            return Scattered(places, rng)
        return Clustered(places, rng, self.clusters or max(MIN_CLUSTERS, self.sites // CLUSTER_SITES))
