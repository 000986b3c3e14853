"""Builders that tests share. Frames are laid out by hand here, so that the codec is never its own judge."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from intergroup_core.config import Config
from intergroup_core.counters import Counters
from intergroup_core.delivery.assembly import Assembly
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.effects import Deliver, Effect, Multicast, Order
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import (
    Instant,
    MemberId,
    Service,
    Timestamp,
    View,
    ViewId,
    group_tag,
    timestamp_at,
)
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.ports import ConstantDistance, Distances
from intergroup_core.presets import PRESETS
from intergroup_core.wire.chunk import Message
from intergroup_core.wire.control import encode_control
from intergroup_core.wire.messages import ControlMessage, LiveReport, RepairRequest, Report
from intergroup_core.wire.parse import Arrival, Parsed, parse
from intergroup_core.wire.run import Run

A, B, C = MemberId(0x0A), MemberId(0x0B), MemberId(0xFFFF_FFFF_FFFF_FFFC)
"""Senders; the last is negative where somebody compares ids as signed numbers."""
R, S = MemberId(0x77), MemberId(0x78)
"""Receivers."""
STRANGER = MemberId(0x5717A96E)

GROUP = "orders"
TAG = group_tag(GROUP)
T0 = Instant(mono=10**12, wall=1_750_000_000 * 10**9)
START = timestamp_at(T0.wall)
DISTANCE_NS = 1_000_000

DATA, KEEP_ALIVE, REQUEST, REPAIR, REPORT, CHANGE = 1, 2, 3, 4, 5, 6
LAST = 1
VERSION_1 = 0xB1
HEADER_BYTES = 48


def micros(count: float) -> int:
    return round(count * 1_000)


def millis(count: float) -> int:
    return round(count * 1_000_000)


def after(ns: int, start: Instant = T0) -> Instant:
    return Instant(start.mono + ns, start.wall + ns)


def a_view(*members: MemberId, start: int = START) -> View:
    chosen = members or (A, B, C)
    return View(id=ViewId(Timestamp(start), min(chosen), 1), members=chosen)


VIEW = a_view()


def a_config(preset: str = "test", **sections: Mapping[str, Any]) -> Config:
    """A preset with some settings changed: `a_config(send={"queue_bytes": 5_000})`."""
    tree = {name: dict(settings) for name, settings in PRESETS[preset].items()}
    for name, settings in sections.items():
        tree.setdefault(name, {}).update(settings)
    return Config.from_mapping(tree)


@cache
def _weights(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The first outputs of splitmix64 from seed 0, made odd."""
    mask, weights, state = (1 << 64) - 1, [], 0
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        weights.append((z ^ (z >> 31)) | 1)
    return np.array(weights, dtype=np.uint64)


def sealed(frame: bytes) -> bytes:
    """The frame with the checksum of its content in its first four bytes; it must be whole words."""
    words = np.frombuffer(b"\0\0\0\0" + frame[4:], dtype="<u8")
    weights = _weights(2 * 8_192)[: 2 * len(words)]
    total = int(np.dot(words, weights[::2])) + int(np.dot(words >> np.uint64(32), weights[1::2]))
    return struct.pack("<I", total >> 32 & 0xFFFFFFFF) + frame[4:]


def a_frame(
    kind: int = DATA,
    *,
    sender: int = A,
    seq: int = 1,
    timestamp: int = START + 1,
    payload: bytes = b"",
    flags: int = LAST,
    fragment: int = 0,
    view_tag: int = VIEW.id.tag,
    group: int = TAG,
    magic_version: int = VERSION_1,
    epoch: int = 0,
    length: int | None = None,
    size: int | None = None,
) -> bytes:
    """A sealed frame; `size` pads it further, `length` lies about its payload."""
    stated = len(payload) if length is None else length
    header = struct.pack(
        "<IBBBBIHHQQQQ",
        *(0, magic_version, kind, flags, epoch, view_tag, stated, fragment, group, sender, seq, timestamp),
    )
    wanted = (HEADER_BYTES + len(payload) + 7) // 8 * 8 if size is None else size
    return sealed((header + payload).ljust(wanted, b"\0"))


def a_keepalive(sender: MemberId = A, seq: int = 0, timestamp: int = START + 1, **fields: Any) -> bytes:
    return a_frame(KEEP_ALIVE, sender=sender, seq=seq, timestamp=timestamp, **fields)


def a_repair(stored: bytes, sender: MemberId = B, **fields: Any) -> bytes:
    return a_frame(REPAIR, sender=sender, seq=0, timestamp=0, payload=stored, **fields)


def a_report(
    member: MemberId = B,
    *,
    serial: int = 1,
    acknowledged: int = START,
    contiguous: Mapping[MemberId, int] | None = None,
    room_frames: int = 1_000,
    live: LiveReport | None = None,
) -> Report:
    return Report(
        member=member,
        view_tag=a_view().id.tag,
        serial=serial,
        acknowledged=Timestamp(acknowledged),
        contiguous=tuple((contiguous or {}).items()),
        room_frames=room_frames,
        live=live,
    )


def a_live_part(
    *,
    counted: bool = True,
    counts: Iterable[MemberId] = (),
    ready: int = 0,
    applied: int = 0,
    stable: int = 0,
    name: str = "",
    relayed: bool = False,
    indirect: bool = False,
) -> LiveReport:
    """What a report says besides where views change."""
    return LiveReport(
        counted=counted,
        counts=tuple(counts),
        ready=Timestamp(ready),
        applied=Timestamp(applied),
        stable=Timestamp(stable),
        name=name,
        relayed=relayed,
        indirect=indirect,
    )


def a_request(requester: MemberId = B, *wanted: Span | Promise) -> RepairRequest:
    return RepairRequest(
        requester=requester,
        view_tag=a_view().id.tag,
        ranges=tuple((each.source, each.first, each.last) for each in wanted if isinstance(each, Span)),
        promises=tuple((each.source, each.timestamp) for each in wanted if isinstance(each, Promise)),
    )


def a_control_frame(message: ControlMessage, **fields: Any) -> bytes:
    kind, body = encode_control(message)
    return a_frame(kind, sender=speaker(message), seq=0, timestamp=0, payload=body, **fields)


def speaker(message: ControlMessage) -> MemberId:
    return message.requester if isinstance(message, RepairRequest) else message.member


def packed(records: Sequence[bytes]) -> bytes:
    """The payload of a message with these records."""
    return struct.pack(f"<{len(records) + 1}I", len(records), *map(len, records)) + b"".join(records)


def laid_out(
    values: Sequence[bytes],
    *,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[bytes] | None = None,
    label: bytes = b"",
) -> bytes:
    """The payload of rows with more than values, byte by byte."""
    layout = bool(label) | (keys is not None) << 1 | (headers is not None) << 2
    parts = [struct.pack("<I", len(values) | layout << 24)]
    if label:
        parts += [struct.pack("<I", len(label)), label, bytes(-len(label) % 4)]
    if keys is not None:
        parts += [struct.pack("<I", 0xFFFFFFFF if key is None else len(key)) for key in keys]
    for each in (headers or (), values):
        parts += [struct.pack("<I", len(one)) for one in each]
    return b"".join([*parts, *(key or b"" for key in keys or ()), *(headers or ()), *values])


def a_message(
    records: Sequence[bytes] = (b"record",),
    *,
    sender: MemberId = A,
    seq: int = 1,
    timestamp: int = START + 1,
    body: int | None = None,
    even: bool = False,
    payload: bytes | None = None,
    **fields: Any,
) -> list[bytes]:
    """The frames of a message, `body` bytes of payload in each; `even` pads the last to the size of the others."""
    payload = packed(records) if payload is None else payload
    width = body or max(8, (len(payload) + 7) // 8 * 8)
    parts = [payload[at : at + width] for at in range(0, len(payload), width)]
    return [
        a_frame(
            sender=sender,
            seq=seq + index,
            timestamp=timestamp + index,
            payload=part,
            fragment=index,
            flags=LAST if index == len(parts) - 1 else 0,
            size=HEADER_BYTES + width if even else None,
            **fields,
        )
        for index, part in enumerate(parts)
    ]


Datagrams = bytes | tuple[bytes, int]
"""One datagram, or a buffer of several and the size of each."""


def an_arrival(*received: Datagrams) -> Arrival:
    """Datagrams as a socket hands them over: each at a multiple of eight bytes."""
    memory = bytearray()
    spans: list[tuple[int, int, int]] = []
    for each in received:
        data, segment = each if isinstance(each, tuple) else (each, len(each))
        spans.append((len(memory), len(data), segment))
        memory += data
        memory += bytes(-len(memory) % 8)
    return Arrival(np.frombuffer(memory, dtype=np.uint8), spans)


def parsed(*received: Datagrams, group: int = TAG, counters: Counters | None = None) -> list[Parsed]:
    return list(parse(an_arrival(*received), group, counters if counters is not None else Counters()))


def a_block(frames: Sequence[bytes]) -> tuple[bytes, int]:
    """Frames of equal size, the last perhaps shorter, as GRO coalesces them."""
    return b"".join(frames), len(frames[0])


def a_run(source: MemberId = A, seq: int = 1, timestamp: int = START + 1, ends: str = "|", **fields: Any) -> Run:
    """Frames of one sender: `|` ends a message, `.` does not, so `..|.` is a message of three and the start of another.

    Each frame carries eight bytes: its seq.
    """
    fragment = fields.pop("fragment", 0)
    repaired = fields.pop("repaired", False)
    frames = []
    for index, mark in enumerate(ends):
        frames.append(
            a_frame(
                sender=source,
                seq=seq + index,
                timestamp=timestamp + index,
                payload=struct.pack("<Q", seq + index),
                fragment=fragment,
                flags=LAST if mark == "|" else 0,
                **fields,
            )
        )
        fragment = 0 if mark == "|" else fragment + 1
    runs = parsed(a_block([a_repair(frame) for frame in frames] if repaired else frames))
    assert len(runs) == 1
    assert isinstance(runs[0], Run)
    return runs[0]


def frames_of(run: Run) -> list[bytes]:
    return [run.frames[index].tobytes() for index in range(run.count)]


def messages(runs: Iterable[Run]) -> list[Message]:
    """What a source's consecutive runs complete."""
    assembly = Assembly()
    chunks = [assembly.add(run) for run in runs]
    return [message for chunk in chunks if chunk is not None for message in chunk.messages()]


def an_endpoint(
    me: MemberId = A,
    *,
    view: View = VIEW,
    counted: Iterable[MemberId] | None = None,
    service: Service = Service.RTO,
    config: Config | None = None,
    clock: HybridClock | None = None,
    distances: Distances | None = None,
    activations: Mapping[MemberId, int] | None = None,
    sources: frozenset[MemberId] | None = None,
    seed: int = 1,
    group: str = GROUP,
) -> Endpoint:
    """A member that has not started; by default every sender counts, and so does this member."""
    return Endpoint(
        me=me,
        name=f"m{me:x}",
        group=group,
        view=view,
        counted=frozenset((*view.members, me) if counted is None else counted),
        service=service,
        config=config or a_config(),
        clock=clock or HybridClock(),
        distances=distances or ConstantDistance(DISTANCE_NS),
        rng=Random(seed),
        activations=activations,
        sources=sources,
    )


def bursts(effects: Iterable[Effect]) -> list[tuple[bytes, int]]:
    """What the network is given, call by call."""
    return [
        (bytes(effect.data[start : start + (effect.burst or len(effect.data))]), effect.segment)
        for effect in effects
        if isinstance(effect, Multicast)
        for start in range(0, len(effect.data), effect.burst or len(effect.data))
    ]


def said(effects: Iterable[Effect], kind: type | None = None) -> list[Any]:
    """What was multicast, as a receiver parses it; of one kind where one is given."""
    everything = parsed(*bursts(effects))
    return [each for each in everything if kind is None or isinstance(each, kind)]


def delivered(effects: Iterable[Effect], kind: type[Deliver] | type[Order] = Deliver) -> list[tuple[MemberId, int]]:
    """The (source, seq) of what was delivered, in order."""
    return [(m.source, m.seq) for e in effects if isinstance(e, kind) for m in e.chunk.messages()]


def records_delivered(effects: Iterable[Effect]) -> list[bytes]:
    return [r for e in effects if isinstance(e, Deliver) for m in e.chunk.messages() for r in m.records()]


FAST = {"bandwidth_start": 1e11, "bandwidth_max": 1e11}
PAIR = a_view(A, B)


def started(me: MemberId = A, **settings: Any) -> Endpoint:
    endpoint = an_endpoint(me, **settings)
    endpoint.start(T0)
    return endpoint


def hears(endpoint: Endpoint, *frames: bytes, now: Instant) -> list[Effect]:
    return endpoint.receive(an_arrival(*frames), now)


def ticked(endpoint: Endpoint, until: Instant) -> list[Effect]:
    """Every effect of the deadlines up to a moment, each at its own time."""
    effects: list[Effect] = []
    while (deadline := endpoint.next_deadline()) is not None and deadline <= until.mono:
        effects += endpoint.tick(after(max(deadline, T0.mono) - T0.mono))
    return effects


def promises(timestamp: int, *sources: MemberId) -> list[bytes]:
    return [a_keepalive(source, 0, timestamp) for source in sources]


def told(endpoint: Endpoint, member: MemberId, now: Instant, **fields: Any) -> list[Effect]:
    return hears(endpoint, a_control_frame(a_report(member, **fields)), now=now)


def runs_said(effects: Iterable[Effect]) -> list[Run]:
    return said(effects, Run)
