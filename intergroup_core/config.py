"""The tree of settings: parsed once at the edge, checked here, frozen everywhere else."""

from __future__ import annotations

import dataclasses
import ipaddress
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, Protocol

from intergroup_core.bounds import Between, check
from intergroup_core.errors import ConfigError
from intergroup_core.presets import PRESETS
from intergroup_core.site_settings import AgentConfig, LogConfig

HEADER_BYTES = 48
"""Size of a frame's header; a repair carries a second one."""

MAX_DATAGRAM_BYTES = 65_000

LEAST_REPEATS = 10
"""Intervals of repetition in the shortest time-out: one grows to eight times its start."""
QUORUMS = ("none", "majority", "all")
MAX_FRAMES = 65_000
"""Frames of one message; their index has 16 bits."""


class FilePath(Protocol):
    """A path object."""

    def __fspath__(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What every member of a group must agree on."""

    frame_bytes: Annotated[int, Between(128, MAX_DATAGRAM_BYTES - HEADER_BYTES)] = 1_400
    """Largest data frame, header included; a multiple of 8 that leaves a repair's header room in a datagram."""
    max_message_bytes: Annotated[int, Between(1, 65_535 * (128 - HEADER_BYTES) * 16)] = 8_000_000
    """Largest record a sender takes; it travels as fragments."""
    clock_bound_ms: Annotated[float, Between(1, 86_400_000)] = 30_000.0
    """How far a sender's timestamp may run ahead of what elapsed time explains (D4)."""
    quorum: str = "none"
    """Sites a component needs to send: none, a number, majority or all of the last agreed view's (M11)."""

    def __post_init__(self) -> None:
        check("group", self)
        if self.quorum not in QUORUMS and not (self.quorum.isascii() and self.quorum.isdigit() and int(self.quorum)):
            raise ConfigError(
                f"group.quorum is {self.quorum!r}; it must be {', '.join(QUORUMS)} or a number of sites from 1 on"
            )
        if self.frame_bytes % 8:
            raise ConfigError(f"group.frame_bytes is {self.frame_bytes}; it must be a multiple of 8")
        if self.frames_of(self.max_message_bytes) > MAX_FRAMES:
            raise ConfigError(
                f"group.max_message_bytes is {self.max_message_bytes}, which needs "
                f"{self.frames_of(self.max_message_bytes)} frames; a message has at most {MAX_FRAMES}: "
                "raise group.frame_bytes or lower it"
            )

    def frames_of(self, payload_bytes: int) -> int:
        """Frames that a payload of this size fills."""
        return -(-payload_bytes // (self.frame_bytes - HEADER_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class SendConfig:
    """How a sender bundles, paces and bounds what it sends (T4.5, D9 to D11, D13)."""

    bundle_bytes: Annotated[int, Between(1, 8_000_000)] = 1_960_000
    """Payload of a message packed from small records under load."""
    burst_bytes: Annotated[int, Between(128, MAX_DATAGRAM_BYTES)] = 65_000
    """Bytes handed to the network in one call."""
    queue_bytes: Annotated[int, Between(1_000, 1e10)] = 8_000_000
    """Records taken from the application and not yet stamped; beyond it callers wait."""
    unstable_bytes: Annotated[int, Between(1_000, 1e10)] = 64_000_000
    """Own messages not yet stable; at the cap only keep-alives are sent."""
    keepalive_gap_us: Annotated[float, Between(0, 1e6)] = 100.0
    """Least time between two prompt keep-alives."""
    keepalive_idle_ms: Annotated[float, Between(1, 60_000)] = 100.0
    """Longest time an idle sender is silent."""
    bandwidth_start: Annotated[float, Between(1_000, 1e12)] = 200e6
    """Bytes per second a sender begins with."""
    bandwidth_min: Annotated[float, Between(1_000, 1e12)] = 1e6
    """Bytes per second that losses cannot cut below."""
    bandwidth_max: Annotated[float, Between(1_000, 1e12)] = 20e9
    """Bytes per second that quiet time cannot raise above."""
    bandwidth_doubling_ms: Annotated[float, Between(1, 600_000)] = 100.0
    """Quiet time in which the bandwidth doubles."""
    bandwidth_cut: Annotated[float, Between(0.1, 0.99)] = 0.7
    """Factor applied on a loss report, at most once a round trip."""

    def __post_init__(self) -> None:
        check("send", self)
        if not self.bandwidth_min <= self.bandwidth_start <= self.bandwidth_max:
            raise ConfigError(
                f"send.bandwidth_start is {self.bandwidth_start:g}; it must lie between "
                f"send.bandwidth_min ({self.bandwidth_min:g}) and send.bandwidth_max ({self.bandwidth_max:g})"
            )
        if self.keepalive_gap_us > self.keepalive_idle_ms * 1_000:
            raise ConfigError(
                f"send.keepalive_gap_us is {self.keepalive_gap_us:g}; it must be at most "
                f"send.keepalive_idle_ms ({self.keepalive_idle_ms:g} ms)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairConfig:
    """Requests, repairs and their adaptation (T3, R1 to R6)."""

    distance_start_us: Annotated[float, Between(1, 1e7)] = 500.0
    """Distance assumed before anything measured it (R4)."""
    distance_floor_us: Annotated[float, Between(1, 1e7)] = 100.0
    """No distance is taken as shorter than this."""
    request_low: Annotated[float, Between(0.5, 2)] = 2.0
    """lowReqParam at the start; kept in [0.5, 2] (T3.2.2)."""
    request_high: Annotated[float, Between(1, 100)] = 2.0
    """highReqParam at the start; kept in [1, 100]."""
    repair_low: Annotated[float, Between(0.5, 10)] = 1.0
    """lowRtxParam at the start; kept in [0.5, 10]."""
    repair_high: Annotated[float, Between(1, 100)] = 1.0
    """highRtxParam at the start; kept in [1, 100]."""
    duplicate_target: Annotated[float, Between(0.01, 10)] = 0.4
    """Average duplicates per loss that adaptation aims at (R3)."""
    delay_target: Annotated[float, Between(0.01, 100)] = 1.0
    """Average delay, in distances, that adaptation aims at (R3)."""
    alpha: Annotated[float, Between(0.01, 1)] = 0.25
    """Weight of the newest value in a moving average."""
    epsilon: Annotated[float, Between(0, 1)] = 0.1
    """Slack below a target before a parameter moves back."""
    backoff_limit: Annotated[int, Between(0, 12)] = 5
    """Largest exponent of the 3^i back-off (R2)."""
    backoff_max_ms: Annotated[float, Between(1, 60_000)] = 500.0
    """Longest a request waits before it is repeated (R2)."""
    give_up_ms: Annotated[float, Between(1, 600_000)] = 5_000.0
    """Time without an answer after which the source is suspected (R2)."""
    stall_distances: Annotated[float, Between(0.5, 1_000)] = 4.0
    """Distances that ordered delivery waits for a promise before it asks for the keep-alive (D13)."""
    bandwidth: Annotated[float, Between(1_000, 1e12)] = 100e6
    """Bytes per second of repairs one member sends at most (R5)."""
    buffer_bytes: Annotated[int, Between(100_000, 1e11)] = 256_000_000
    """Bound of the message buffer (R6)."""
    request_ranges: Annotated[int, Between(1, 1_000)] = 64
    """Ranges in one request at most."""

    def __post_init__(self) -> None:
        check("repair", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportConfig:
    """Acknowledgments and room, from every member to all (D10)."""

    busy_ms: Annotated[float, Between(0.05, 10_000)] = 2.0
    """Longest wait for a report while data arrives."""
    idle_ms: Annotated[float, Between(1, 60_000)] = 250.0
    """Time between reports when nothing changed."""
    room_bytes: Annotated[int, Between(10_000, 1e10)] = 16_000_000
    """What this member takes beyond what it acknowledged, all senders together."""
    room_fraction: Annotated[float, Between(0.01, 1)] = 0.25
    """Part of the room that, once received, is reported at once."""
    direct_members: Annotated[int, Between(0, 20_000)] = 16
    """Members up to which everybody reports to all; in larger groups receivers are heard through the hierarchy."""

    def __post_init__(self) -> None:
        check("report", self)
        if self.busy_ms > self.idle_ms:
            raise ConfigError(
                f"report.busy_ms is {self.busy_ms:g}; it must be at most report.idle_ms ({self.idle_ms:g})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipConfig:
    """Joining, leaving, and what happens when members fail (T5, M0 to M14)."""

    bootstrap_retry_ms: Annotated[float, Between(1, 60_000)] = 50.0
    """Time between two calls of a newcomer for a sponsor, at first; it grows while nobody answers."""
    bootstrap_wait_ms: Annotated[float, Between(1, 600_000)] = 300.0
    """Time without an answer after which a newcomer that wants to send forms a view of its own."""
    sponsor_ms: Annotated[float, Between(1, 60_000)] = 100.0
    """Time in which a sponsor must have acted before another one is asked."""
    suspect_ms: Annotated[float, Between(10, 600_000)] = 700.0
    """Silence after which a sender is suspected, at least; several idle periods of its keep-alives (M8)."""
    suspect_max_ms: Annotated[float, Between(10, 600_000)] = 5_000.0
    """Silence after which a sender is suspected, however irregular it has been."""
    repeat_ms: Annotated[float, Between(0.1, 60_000)] = 20.0
    """Time after which a repair message is repeated; it doubles up to eight times that."""
    cut_wait_ms: Annotated[float, Between(0, 60_000)] = 2.0
    """Time given to what is still on its way before a member says how much it has."""
    receivers_wait_ms: Annotated[float, Between(0, 60_000)] = 40.0
    """The same where there are receivers: the hierarchy tells what they have, and it is fetched from them (T5.4.2)."""
    backoff_ms: Annotated[float, Between(0, 60_000)] = 20.0
    """Pause before consensus starts again, growing with every restart in a row (M9)."""
    block_ms: Annotated[float, Between(1, 3_600_000)] = 3_000.0
    """Time for which a member that could not be recovered from is not considered (M7)."""
    silence_ms: Annotated[float, Between(10, 86_400_000)] = 60_000.0
    """Time without data after which a sender becomes a receiver, unless it is the last sender."""
    lease_ms: Annotated[float, Between(1, 600_000)] = 2_000.0
    """Time for which a sponsor keeps what a newcomer may need while the newcomer is not yet counted (D7)."""
    forget_ms: Annotated[float, Between(10, 3_600_000)] = 3_000.0
    """Silence after which a receiver's acknowledgment is not waited for any more."""
    max_senders: Annotated[int, Between(1, 256)] = 256
    """Senders of a view at most: what members say to each other about them must fit a datagram."""
    linger_ms: Annotated[float, Between(0, 600_000)] = 1_000.0
    """Time for which a member that leaves still answers for what it sent, if that is not stable sooner."""

    def __post_init__(self) -> None:
        check("membership", self)
        if self.suspect_ms > self.suspect_max_ms:
            raise ConfigError(
                f"membership.suspect_ms is {self.suspect_ms:g}; it must be at most "
                f"membership.suspect_max_ms ({self.suspect_max_ms:g})"
            )
        if self.suspect_ms < LEAST_REPEATS * self.repeat_ms:
            raise ConfigError(
                f"membership.suspect_ms is {self.suspect_ms:g}; in a repair members are heard as often as they repeat "
                f"themselves, so it must be at least {LEAST_REPEATS} times membership.repeat_ms ({self.repeat_ms:g})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyConfig:
    """The control hierarchy: who talks to whom, how often, and when that changes (T2.2.3, H1 to H7)."""

    name: str = "default"
    """Sites of one name are in one hierarchy, whatever groups they have members in."""
    bandwidth: Annotated[float, Between(1_000, 1e10)] = 1e6
    """Bytes per second of control messages in a local group, and as many in the coordinator group."""
    interval_ms: Annotated[float, Between(1, 600_000)] = 1_000.0
    """Least time between a site's control messages while nothing happens."""
    busy_ms: Annotated[float, Between(1, 600_000)] = 20.0
    """The same while data flows; the bandwidth still bounds it (H5)."""
    local_target: Annotated[int, Between(2, 1_000)] = 100
    """Children of a coordinator that the hierarchy aims at."""
    coordinators_low: Annotated[int, Between(1, 1_000)] = 1
    """Coordinators at least, where there are enough sites."""
    coordinators_high: Annotated[int, Between(1, 1_000)] = 100
    """Coordinators at most, as far as the hierarchy can help it."""
    boundary_ttl: Annotated[int, Between(1, 255)] = 16
    """Routers up to which a coordinator is near."""
    closeness_ms: Annotated[float, Between(0.01, 60_000)] = 30.0
    """One-way delay up to which a coordinator is near."""
    change_low_ms: Annotated[float, Between(1, 600_000)] = 2_000.0
    """S1 of the time that a change between coordinator and child is thought over."""
    change_high_ms: Annotated[float, Between(1, 600_000)] = 4_000.0
    """S2 of it."""
    ring_ms: Annotated[float, Between(1, 60_000)] = 50.0
    """Time that one ring of a search waits for answers; longer than a round trip inside the boundary."""
    fault_ms: Annotated[float, Between(10, 3_600_000)] = 4_000.0
    """Silence after which a control process is taken for gone, at least; several of its intervals."""
    grace_ms: Annotated[float, Between(10, 3_600_000)] = 8_000.0
    """Time for which what it had acknowledged still counts; longer than others need to find a new place (H7)."""

    def __post_init__(self) -> None:
        check("hierarchy", self)
        if self.coordinators_low > self.coordinators_high:
            raise ConfigError(
                f"hierarchy.coordinators_low is {self.coordinators_low}; it must be at most "
                f"hierarchy.coordinators_high ({self.coordinators_high})"
            )
        if self.change_low_ms > self.change_high_ms:
            raise ConfigError(
                f"hierarchy.change_low_ms is {self.change_low_ms:g}; it must be at most "
                f"hierarchy.change_high_ms ({self.change_high_ms:g})"
            )
        if self.busy_ms > self.interval_ms:
            raise ConfigError(
                f"hierarchy.busy_ms is {self.busy_ms:g}; it must be at most hierarchy.interval_ms "
                f"({self.interval_ms:g})"
            )
        if self.fault_ms < 3 * self.interval_ms:
            raise ConfigError(
                f"hierarchy.fault_ms is {self.fault_ms:g}; an idle site says something every "
                f"hierarchy.interval_ms ({self.interval_ms:g}) on average, so it must be at least three times that"
            )
        if self.grace_ms < self.fault_ms:
            raise ConfigError(
                f"hierarchy.grace_ms is {self.grace_ms:g}; a child needs hierarchy.fault_ms ({self.fault_ms:g}) to "
                "notice that its coordinator is gone, so it must be at least that"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Where and how this member reaches the group; local to it."""

    interface: str = ""
    """Name or address of the interface; empty for the default route's, else loopback."""
    address: str = ""
    """Multicast address; empty for the one the group's name hashes to."""
    port: Annotated[int, Between(0, 65_535)] = 0
    """UDP port; 0 for the one the group's name hashes to."""
    ttl: Annotated[int, Between(0, 255)] = 1
    """Routers a multicast may cross."""
    offload: bool = True
    """Use UDP GSO and GRO where the kernel has them."""
    socket_buffer_bytes: Annotated[int, Between(65_536, 2**31 - 1)] = 32_000_000
    """Receive buffer asked of the kernel."""
    app_queue_bytes: Annotated[int, Between(65_536, 1e11)] = 16_000_000
    """Delivered data the application has not taken yet, before the sender is told to wait."""

    def __post_init__(self) -> None:
        check("network", self)
        if self.address and not _is_multicast(self.address):
            raise ConfigError(
                f"network.address is {self.address!r}; it must be an IPv4 multicast address, such as 239.192.7.7, "
                "or empty"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting of one member; `group` must be equal at all of them."""

    group: GroupConfig = field(default_factory=GroupConfig)
    send: SendConfig = field(default_factory=SendConfig)
    repair: RepairConfig = field(default_factory=RepairConfig)
    report: ReportConfig = field(default_factory=ReportConfig)
    membership: MembershipConfig = field(default_factory=MembershipConfig)
    hierarchy: HierarchyConfig = field(default_factory=HierarchyConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    log: LogConfig = field(default_factory=LogConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)

    def __post_init__(self) -> None:
        group, send = self.group, self.send
        if send.burst_bytes < group.frame_bytes:
            raise ConfigError(
                f"send.burst_bytes is {send.burst_bytes}; it must hold one frame: "
                f"at least group.frame_bytes ({group.frame_bytes})"
            )
        if send.queue_bytes < group.max_message_bytes:
            raise ConfigError(
                f"send.queue_bytes is {send.queue_bytes}; it must hold the largest message: "
                f"at least group.max_message_bytes ({group.max_message_bytes})"
            )
        if group.frames_of(send.bundle_bytes) > MAX_FRAMES:
            raise ConfigError(
                f"send.bundle_bytes is {send.bundle_bytes}, which needs {group.frames_of(send.bundle_bytes)} frames; "
                f"a message has at most {MAX_FRAMES}: raise group.frame_bytes or lower it"
            )
        # A message is stamped only when all its frames fit the window (D11): one that never fits would never leave.
        largest = max(group.frames_of(group.max_message_bytes), group.frames_of(send.bundle_bytes)) * group.frame_bytes
        if send.unstable_bytes < largest:
            raise ConfigError(
                f"send.unstable_bytes is {send.unstable_bytes}; it must hold the largest message in frames: "
                f"at least {largest}, or lower group.max_message_bytes or send.bundle_bytes"
            )
        if self.membership.suspect_ms < 2 * send.keepalive_idle_ms:
            raise ConfigError(
                f"membership.suspect_ms is {self.membership.suspect_ms:g}; an idle sender is silent for up to "
                f"send.keepalive_idle_ms ({send.keepalive_idle_ms:g}), so it must be at least twice that"
            )
        if self.repair.buffer_bytes < send.unstable_bytes:
            raise ConfigError(
                f"repair.buffer_bytes is {self.repair.buffer_bytes}; it must hold what a sender may have unstable: "
                f"at least send.unstable_bytes ({send.unstable_bytes})"
            )

    @classmethod
    def lan(cls) -> Config:
        """One switch or one machine: the defaults."""
        return cls.preset("lan")

    @classmethod
    def wan(cls) -> Config:
        """Distances of tens of milliseconds and megabytes a second."""
        return cls.preset("wan")

    @classmethod
    def test(cls) -> Config:
        """Small frames and buffers, so that a short simulation meets every bound."""
        return cls.preset("test")

    @classmethod
    def preset(cls, name: str) -> Config:
        if name not in PRESETS:
            raise ConfigError(f"there is no preset {name!r}; the presets are {', '.join(PRESETS)}")
        return cls.from_mapping(PRESETS[name])

    @classmethod
    def load(cls, path: str | FilePath) -> Config:
        """The settings of a TOML file; what it does not name keeps its default."""
        # Only the edge reads files. This is the one place where the pure part calls upwards, so that users find
        # loading where they look for it.
        from intergroup_core.runtime.settings import read_settings

        return cls.from_toml(read_settings(path), source=str(path))

    @classmethod
    def from_toml(cls, text: str, *, source: str = "the settings") -> Config:
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{source} is not valid TOML: {error}") from None
        try:
            return cls.from_mapping(tree)
        except ConfigError as error:
            raise ConfigError(f"in {source}: {error}") from None

    @classmethod
    def from_mapping(cls, tree: Mapping[str, Any]) -> Config:
        """Sections by name, each a mapping of settings by name."""
        chosen: dict[str, Any] = {}
        for name, settings in tree.items():
            if name not in SECTIONS:
                raise ConfigError(f"there is no section {name!r}; did you mean [{_nearest(name, SECTIONS)}]?")
            if not isinstance(settings, Mapping):
                raise ConfigError(f"{name} is {settings!r}; it must be a section, [{name}], with settings in it")
            known = {setting.name for setting in dataclasses.fields(SECTIONS[name])}
            for setting in settings:
                if setting not in known:
                    raise ConfigError(f"there is no setting {name}.{setting}; did you mean {_suggest(name, setting)}?")
            chosen[name] = SECTIONS[name](**settings)
        return cls(**chosen)

    def to_mapping(self) -> dict[str, dict[str, Any]]:
        """What `from_mapping` makes this from, for another process."""
        return dataclasses.asdict(self)

    def difference(self, other: Config, *, apart_from: Collection[str] = ()) -> str | None:
        """The first setting in which two differ, by its name and both values."""
        for section in SECTIONS:
            mine, theirs = getattr(self, section), getattr(other, section)
            for setting in dataclasses.fields(mine):
                if f"{section}.{setting.name}" in apart_from:
                    continue
                values = getattr(mine, setting.name), getattr(theirs, setting.name)
                if values[0] != values[1]:
                    return f"{section}.{setting.name} ({values[0]!r} and {values[1]!r})"
        return None


SECTIONS: Mapping[str, type] = {
    "group": GroupConfig,
    "send": SendConfig,
    "repair": RepairConfig,
    "report": ReportConfig,
    "membership": MembershipConfig,
    "hierarchy": HierarchyConfig,
    "network": NetworkConfig,
    "log": LogConfig,
    "agent": AgentConfig,
}


def _suggest(section: str, setting: str) -> str:
    by_name: dict[str, str] = {}
    for other, kind in SECTIONS.items():
        for known in dataclasses.fields(kind):
            if other == section or known.name not in by_name:
                by_name[known.name] = f"{other}.{known.name}"
    return by_name[_nearest(setting, by_name)]


def _nearest(word: str, known: Mapping[str, object]) -> str:
    return get_close_matches(str(word), known, n=1, cutoff=0.0)[0]


def _is_multicast(address: str) -> bool:
    try:
        return ipaddress.IPv4Address(address).is_multicast
    except ValueError:
        return False
