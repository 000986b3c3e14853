"""Builders of control processes and of what they say to each other."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from intergroup_core.config import Config, HierarchyConfig
from intergroup_core.effects import Control, ControlEffect
from intergroup_core.hierarchy.attachment import Attachment
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.hierarchy.search import Found
from intergroup_core.ids import Instant, SiteId, Timestamp
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    CoordinatorControl,
    GlobalControl,
    GroupKey,
    HierarchyMessage,
    LocalControl,
)

ME, CHIEF, OTHER, THIRD = SiteId(0x50), SiteId(0x10), SiteId(0x20), SiteId(0xFFFF_FFFF_FFFF_FFF0)
KEY, SECOND_KEY = GroupKey(7, 1), GroupKey(8, 1)
MS, S = 1_000_000, 1_000_000_000
T = 100 * S
"""When these stories begin."""


def a_hierarchy_config(**settings: Any) -> HierarchyConfig:
    return replace(Config.test().hierarchy, **settings)


def at(ns: int) -> Instant:
    return Instant(ns, ns)


def clock(ns: int) -> int:
    return ns // 1_000


def acks(upto: int, *keys: GroupKey, slowest: SiteId = OTHER) -> dict[GroupKey, Acknowledgment]:
    return {key: Acknowledgment(Timestamp(upto), 1, slowest, "") for key in keys or (KEY,)}


def an_lcon(site: SiteId = OTHER, coordinator: SiteId = CHIEF, *, sent: int = T, **fields: Any) -> LocalControl:
    return LocalControl(**{"site": site, "coordinator": coordinator, "ttl": 3, "clock": clock(sent), **fields})


def a_ccon(site: SiteId = CHIEF, *, sent: int = T, **fields: Any) -> CoordinatorControl:
    return CoordinatorControl(**{"site": site, "ttl": 3, "clock": clock(sent), **fields})


def a_gcon(site: SiteId = OTHER, *, sent: int = T, **fields: Any) -> GlobalControl:
    return GlobalControl(**{"site": site, "clock": clock(sent), **fields})


def an_attachment(now: int = T, *, coordinator: SiteId = CHIEF, distance_us: int = 5_000) -> Attachment:
    return Attachment(ME, Found(coordinator=coordinator, distance_us=distance_us, hops=2, coordinators=3), 100, now)


def a_leadership(now: int = T, *, silent_until: int = T) -> Leadership:
    return Leadership(ME, 100, 100, silent_until, now)


def a_process(seed: int = 1, **settings: Any) -> ControlProcess:
    return ControlProcess(me=ME, name="here", config=a_hierarchy_config(**settings), system_ttl=64, rng=Random(seed))


def said(effects: list[ControlEffect]) -> list[HierarchyMessage]:
    return [effect.message for effect in effects if isinstance(effect, Control)]


def run(process: ControlProcess, until: int) -> list[HierarchyMessage]:
    """Let time pass; what it said."""
    found: list[HierarchyMessage] = []
    while (due := process.next_deadline()) is not None and due <= until:
        found += said(process.tick(at(due)))
    return found
