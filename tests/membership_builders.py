"""What members say about membership, as tests build it; the defaults belong together: A, B and C send in VIEW."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import (
    MemberId,
    Service,
    Timestamp,
    View,
    ViewId,
)
from intergroup_core.membership.quorum import QuorumRecord
from intergroup_core.ports import ConstantDistance
from intergroup_core.wire.control import encode_change
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    Change,
    Cut,
    Entry,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    MembershipChange,
    Peer,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)
from tests.builders import (
    CHANGE,
    DISTANCE_NS,
    GROUP,
    START,
    T0,
    VIEW,
    A,
    B,
    C,
    R,
    a_config,
    a_control_frame,
    a_frame,
    hears,
)


def a_peer(member: MemberId = A, name: str | None = None, site: str = "") -> Peer:
    return Peer(member, f"m{member:x}" if name is None else name, site)


def a_view_id(start: int = START + 1_000, leader: MemberId = A, leader_seq: int = 1) -> ViewId:
    return ViewId(Timestamp(start), leader, leader_seq)


def a_solicitation(member: MemberId = R, *, attempt: int = 0, clock: int = START, sends: bool = False) -> Solicitation:
    return Solicitation(
        member=member, name=f"m{member:x}", site="", attempt=attempt, clock=Timestamp(clock), sends=sends
    )


def a_sponsorship(
    member: MemberId = A,
    newcomer: MemberId = R,
    *,
    attempt: int = 0,
    refusal: str = "",
    view: View = VIEW,
    position: int = START,
    activations: Mapping[MemberId, int] | None = None,
    promises: Mapping[MemberId, int] | None = None,
    departed: Mapping[MemberId, int] | None = None,
    primary: bool = True,
) -> Sponsorship:
    """Where a newcomer may start; by default at the first message of a view."""
    points = dict.fromkeys(view.members, 1) if activations is None else activations
    stamps = dict.fromkeys(points, position) if promises is None else promises
    return Sponsorship(
        member=member,
        newcomer=newcomer,
        attempt=attempt,
        refusal=refusal,
        ahead_us=0,
        epoch=view.id,
        view=view.id,
        peers=tuple(map(a_peer, view.members)),
        position=Timestamp(position),
        acknowledged=Timestamp(position),
        activations=tuple(points.items()),
        promises=tuple((source, Timestamp(stamp)) for source, stamp in stamps.items()),
        departed=tuple((departed or {}).items()),
        primary=primary,
        number=1,
    )


def an_add_request(
    member: MemberId = R, sponsor: MemberId = A, *, epoch: ViewId = VIEW.id, first_seq: int = 1
) -> AddRequest:
    return AddRequest(
        member=member,
        name=f"m{member:x}",
        site="",
        sponsor=sponsor,
        epoch=epoch,
        first_seq=first_seq,
        clock=Timestamp(START),
    )


def a_join(
    member: MemberId = B,
    *,
    procs: Iterable[MemberId] = (A, B, C),
    fails: Iterable[MemberId] = (),
    serial: int = 1,
    epoch: ViewId | None = VIEW.id,
    site: str = "",
) -> Join:
    return Join(
        member=member,
        name=f"m{member:x}",
        site=site,
        serial=serial,
        epoch=epoch,
        procs=tuple(procs),
        fails=tuple(fails),
    )


def a_failure_block(
    member: MemberId = B, process: MemberId = C, seq: int = 1, *, serial: int = 1, epoch: ViewId = VIEW.id
) -> FailureBlock:
    return FailureBlock(member=member, serial=serial, epoch=epoch, process=process, seq=seq)


def a_recovery_info(
    member: MemberId = B,
    *,
    attempt: int = 1,
    epoch: ViewId | None = VIEW.id,
    last_seq: int = 0,
    clock: int = START,
    leaving: bool = False,
    changed: int = START,
    failed: Iterable[tuple[MemberId, int, int]] = (),
    record: QuorumRecord | None = None,
) -> RecoveryInfo:
    return RecoveryInfo(
        member=member,
        attempt=attempt,
        epoch=epoch,
        last_seq=last_seq,
        clock=Timestamp(clock),
        leaving=leaving,
        changed=Timestamp(changed),
        failed=tuple((source, seq, Timestamp(promise)) for source, seq, promise in failed),
        record=(record or QuorumRecord()).to_bytes(),
    )


def a_cut(last: Mapping[MemberId, int] | None = None, *, epoch: ViewId = VIEW.id, changes: int = START) -> Cut:
    return Cut(epoch=epoch, changes=Timestamp(changes), last=tuple((last or {}).items()))


def a_ready(member: MemberId = B, *, attempt: int = 1, first_seq: int = 1, cut: Cut | None = None) -> ReadyToCommit:
    return ReadyToCommit(member=member, attempt=attempt, first_seq=first_seq, cut=cut)


def an_entry(member: MemberId = A, first_seq: int = 1, old: ViewId | None = VIEW.id) -> Entry:
    return Entry(peer=a_peer(member), first_seq=first_seq, old=old)


def a_membership_change(
    member: MemberId = A,
    *,
    entries: Iterable[Entry] = (),
    cuts: Iterable[Cut] = (),
    view: ViewId | None = None,
    attempt: int = 1,
    left: Iterable[MemberId] = (),
    blocked: Iterable[MemberId] = (),
    primary: bool = True,
    again: bool = False,
) -> MembershipChange:
    return MembershipChange(
        member=member,
        attempt=attempt,
        view=view or a_view_id(),
        entries=tuple(entries),
        cuts=tuple(cuts),
        left=tuple(left),
        blocked=tuple(blocked),
        primary=primary,
        number=100,
        again=again,
    )


def a_view_request(member: MemberId = R, *, epoch: ViewId | None = VIEW.id, tag: int = 0) -> ViewRequest:
    return ViewRequest(member=member, epoch=epoch, tag=tag)


def a_farewell(member: MemberId = R) -> Farewell:
    return Farewell(member=member)


def an_add(member: MemberId = R, first_seq: int = 1) -> Add:
    return Add(peer=a_peer(member), first_seq=first_seq)


def a_leave(reason: str = "left") -> Leave:
    return Leave(reason=reason)


def a_change_frame(
    change: Change, sender: MemberId = A, seq: int = 1, timestamp: int = START + 1, **fields: Any
) -> bytes:
    """An ordered membership message."""
    return a_frame(CHANGE, sender=sender, seq=seq, timestamp=timestamp, payload=encode_change(change), **fields)


def a_live_endpoint(
    me: MemberId = R,
    *,
    service: Service = Service.RTO,
    config: Config | None = None,
    clock: HybridClock | None = None,
    sender: bool = False,
    site: str = "",
    record: bytes | None = None,
    sources: frozenset[MemberId] | None = None,
    seed: int = 1,
) -> Endpoint:
    """A member without a view that has not started."""
    return Endpoint(
        me=me,
        name=f"m{me:x}",
        group=GROUP,
        service=service,
        config=config or a_config(),
        clock=clock or HybridClock(),
        distances=ConstantDistance(DISTANCE_NS),
        rng=Random(seed),
        sources=sources,
        sender=sender,
        site=site,
        record=record,
    )


def a_live_receiver(me: MemberId = R, *, view: View = VIEW, **settings: Any) -> Endpoint:
    """A member that was sponsored at the start of a view."""
    endpoint = a_live_endpoint(me, **settings)
    endpoint.start(T0)
    hears(endpoint, a_control_frame(a_sponsorship(view.members[0], me, view=view)), now=T0)
    assert endpoint.view == View(id=view.id, members=view.members, names=tuple(f"m{m:x}" for m in view.members))
    return endpoint
