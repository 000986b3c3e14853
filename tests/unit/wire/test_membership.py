from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp, ViewId
from intergroup_core.wire.control import decode_change, decode_control, encode_change, encode_control
from intergroup_core.wire.fields import MAX_ITEMS, MAX_RECORD, MAX_TEXT
from intergroup_core.wire.header import MAX_SEQ, FrameType
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES
from intergroup_core.wire.keeping import KEEPING_TYPES
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
    MembershipMessage,
    Peer,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)
from tests.builders import A, B, C, R
from tests.membership_builders import (
    a_cut,
    a_failure_block,
    a_farewell,
    a_join,
    a_leave,
    a_membership_change,
    a_ready,
    a_recovery_info,
    a_solicitation,
    a_sponsorship,
    a_view_request,
    an_add,
    an_add_request,
    an_entry,
)

members = st.integers(1, (1 << 64) - 1).map(MemberId)
seqs = st.integers(0, MAX_SEQ)
first_seqs = st.integers(1, MAX_SEQ)
timestamps = st.integers(0, MAX_TIMESTAMP).map(Timestamp)
digests = st.integers(0, MAX_TIMESTAMP)
texts = st.text(max_size=16)
views = st.builds(ViewId, timestamps, members, digests)
peers = st.builds(Peer, members, texts, texts)


def some(what: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(what, max_size=5).map(tuple)


positions = some(st.tuples(members, seqs))
promises = some(st.tuples(members, timestamps))
cuts = st.builds(Cut, epoch=views, changes=timestamps, last=positions)
entries = st.builds(Entry, peer=peers, first_seq=first_seqs, old=st.none() | views)
messages = st.one_of(
    st.builds(
        Solicitation, member=members, name=texts, site=texts, attempt=seqs, clock=timestamps, sends=st.booleans()
    ),
    st.builds(
        Sponsorship,
        member=members,
        newcomer=members,
        attempt=seqs,
        refusal=texts,
        ahead_us=st.integers(-(1 << 62), 1 << 62),
        epoch=views,
        view=views,
        peers=some(peers),
        position=timestamps,
        acknowledged=timestamps,
        activations=some(st.tuples(members, first_seqs)),
        promises=promises,
        departed=some(st.tuples(members, seqs)),
        primary=st.booleans(),
        number=seqs,
        ledger=st.binary(max_size=100),
    ),
    st.builds(
        AddRequest,
        member=members,
        name=texts,
        site=texts,
        sponsor=members,
        epoch=views,
        first_seq=first_seqs,
        clock=timestamps,
    ),
    st.builds(
        Join,
        member=members,
        name=texts,
        site=texts,
        serial=digests,
        epoch=st.none() | views,
        procs=some(members),
        fails=some(members),
    ),
    st.builds(FailureBlock, member=members, serial=digests, epoch=views, process=members, seq=seqs),
    st.builds(
        RecoveryInfo,
        member=members,
        attempt=digests,
        epoch=st.none() | views,
        last_seq=seqs,
        clock=timestamps,
        leaving=st.booleans(),
        changed=timestamps,
        failed=some(st.tuples(members, seqs, timestamps)),
        record=st.binary(max_size=100),
    ),
    st.builds(ReadyToCommit, member=members, attempt=digests, first_seq=first_seqs, cut=st.none() | cuts),
    st.builds(
        MembershipChange,
        member=members,
        attempt=digests,
        view=views,
        entries=some(entries),
        cuts=some(cuts),
        left=some(members),
        blocked=some(members),
        primary=st.booleans(),
        number=seqs,
        again=st.booleans(),
    ),
    st.builds(ViewRequest, member=members, epoch=st.none() | views, tag=st.integers(0, (1 << 32) - 1)),
    st.builds(Farewell, member=members),
)
changes = st.one_of(
    st.builds(Add, peer=peers, first_seq=first_seqs),
    st.builds(Leave, reason=texts),
)


@given(messages)
def test_what_is_said_about_membership_comes_back_as_it_was(message: MembershipMessage) -> None:
    kind, body = encode_control(message)
    assert decode_control(kind, message.member, 0, body) == message


@given(changes)
def test_an_ordered_change_comes_back_as_it_was(change: Change) -> None:
    assert decode_change(encode_change(change)) == change


ONE_OF_EACH: list[MembershipMessage] = [
    a_solicitation(),
    a_sponsorship(),
    an_add_request(),
    a_join(fails=[C]),
    a_failure_block(),
    a_recovery_info(failed=[(C, 5, 7)]),
    a_ready(cut=a_cut({A: 5, B: 6})),
    a_membership_change(entries=[an_entry(A), an_entry(B)], cuts=[a_cut({A: 5})], blocked=[C]),
    a_view_request(),
    a_farewell(),
]


def test_there_is_one_of_each() -> None:
    ordered = {FrameType.DATA, FrameType.KEEP_ALIVE, FrameType.REPAIR, FrameType.CHANGE}
    control = set(FrameType) - ordered - {FrameType.REQUEST, FrameType.REPORT} - HIERARCHY_TYPES - KEEPING_TYPES
    assert {encode_control(message)[0] for message in ONE_OF_EACH} == control


def fields_of(message: MembershipMessage) -> tuple[FrameType, list[Any]]:
    kind, body = encode_control(message)
    return kind, msgpack.unpackb(body)


def is_read(kind: FrameType, fields: Any) -> bool:
    return decode_control(kind, A, 0, msgpack.packb(fields)) is not None


@pytest.mark.parametrize("message", ONE_OF_EACH, ids=lambda message: type(message).__name__)
def test_a_body_with_a_field_too_many_or_too_few_is_none(message: MembershipMessage) -> None:
    kind, fields = fields_of(message)
    assert is_read(kind, fields)
    assert not is_read(kind, [*fields, 0])
    assert not fields or not is_read(kind, fields[:-1])


@pytest.mark.parametrize("message", ONE_OF_EACH[:-1], ids=lambda message: type(message).__name__)
@pytest.mark.parametrize(
    "wrong", [-(1 << 63), 0.5, {}, [0, 0, 0], "x" * (MAX_TEXT + 1), bytes(MAX_RECORD + 1), [[]], [[0, 0]]]
)
def test_a_field_of_no_kind_that_belongs_there_is_none(message: MembershipMessage, wrong: Any) -> None:
    kind, fields = fields_of(message)
    for at in range(len(fields)):
        assert not is_read(kind, [*fields[:at], wrong, *fields[at + 1 :]]), f"field {at}"


@given(st.sampled_from(ONE_OF_EACH), st.data())
def test_a_body_with_any_byte_changed_is_read_without_raising(message: MembershipMessage, data: st.DataObject) -> None:
    kind, body = encode_control(message)
    spoilt = bytearray(body)
    spoilt[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = decode_control(kind, message.member, 0, bytes(spoilt))
    assert found is None or encode_control(found)[0] is kind


@given(st.sampled_from([encode_control(message)[0] for message in ONE_OF_EACH]), st.binary(max_size=200))
def test_any_bytes_are_read_without_raising(kind: FrameType, body: bytes) -> None:
    found = decode_control(kind, A, 0, body)
    assert found is None or encode_control(found)[0] is kind


@pytest.mark.parametrize("member", [0, -1, True, None, "A"])
def test_a_member_is_sixty_four_bits_and_not_zero(member: Any) -> None:
    _, fields = fields_of(a_join())
    assert not is_read(FrameType.JOIN, [*fields[:4], [member], fields[5]])


def test_a_list_has_a_greatest_length() -> None:
    _, fields = fields_of(a_join())
    assert is_read(FrameType.JOIN, [*fields[:4], [A] * MAX_ITEMS, []])
    assert not is_read(FrameType.JOIN, [*fields[:4], [A] * (MAX_ITEMS + 1), []])


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        [0],
        [3, "left"],
        [1],
        [1, [R, "r", ""]],
        [1, [0, "r", ""], 1],
        [1, [R, "r"], 1],
        [1, [R, "r", ""], -1],
        [1, [R, "r", ""], 1, 1],
        [2],
        [2, None],
        [2, "left", 0],
        [2, "x" * (MAX_TEXT + 1)],
        {},
    ],
)
def test_a_body_that_is_no_ordered_change_is_none(fields: Any) -> None:
    assert decode_change(msgpack.packb(fields)) is None


@given(st.binary(max_size=100))
def test_any_bytes_are_a_change_or_none(body: bytes) -> None:
    change = decode_change(body)
    assert change is None or isinstance(change, (Add, Leave))


@given(st.sampled_from([an_add(R), a_leave()]), st.data())
def test_a_change_with_any_byte_changed_is_read_without_raising(change: Change, data: st.DataObject) -> None:
    body = bytearray(encode_change(change))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    decode_change(bytes(body))


@pytest.mark.parametrize(
    "message",
    [
        an_add_request(first_seq=0),
        a_ready(first_seq=0),
        a_membership_change(entries=[an_entry(A, 0)]),
        a_sponsorship(activations={A: 0}),
    ],
    ids=lambda message: type(message).__name__,
)
def test_seqs_begin_at_one_so_nobody_can_start_before_it(message: MembershipMessage) -> None:
    kind, body = encode_control(message)
    assert decode_control(kind, message.member, 0, body) is None


def test_nobody_is_added_before_the_first_seq() -> None:
    assert decode_change(encode_change(an_add(R, 0))) is None
