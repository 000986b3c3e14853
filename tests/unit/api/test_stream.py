"""From deliveries to events with names, places and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from intergroup_core.api.events import Batch, BatchEvent, Departed, Gap, Message, Peer, ViewChange, time_of
from intergroup_core.api.stream import Stream
from intergroup_core.cli.rows import json_line
from intergroup_core.effects import Departure, Install
from intergroup_core.effects import Gap as GapEffect
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId, timestamp_at
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.headers import encode_headers
from intergroup_core.wire.labels import encode_label
from intergroup_core.wire.run import Run
from tests.builders import START, A, B, C, a_message, laid_out, parsed
from tests.log_builders import a_label, chunk_of

ANNA, BERT, CARL = Peer("anna", f"{A:016x}"), Peer("bert", f"{B:016x}"), Peer("carl", f"{C:016x}")


def a_stream(service: Service = Service.RTO) -> Stream:
    return Stream("prices", service)


def an_install(*members: MemberId, names: tuple[str, ...], start: int = START, **fields: object) -> Install:
    view = View(id=ViewId(Timestamp(start), members[0] if members else A, 1), members=members, names=names)
    return Install(view, **fields)  # type: ignore[arg-type]


def a_chunk(*records: bytes, source: MemberId = A, seq: int = 1, timestamp: int = START + 1) -> Chunk:
    (run,) = parsed(*a_message(records, sender=source, seq=seq, timestamp=timestamp))
    assert isinstance(run, Run)
    return Chunk((), run)


def one(stream: Stream, delivered: Chunk | Install | GapEffect) -> BatchEvent:
    (event,) = stream.events(delivered)
    return event


def messages(stream: Stream, chunk: Chunk) -> list[Message]:
    return [m for event in stream.events(chunk) if isinstance(event, Batch) for m in event.messages()]


def test_a_view_names_who_sends_who_came_and_who_went() -> None:
    stream = a_stream()
    one(stream, an_install(A, B, names=("anna", "bert")))
    event = one(
        stream,
        an_install(
            A,
            C,
            names=("anna", "carl"),
            start=START + 9,
            joined=(C,),
            departed=(Departure(B, "bert", "failed"),),
            transitional=(A,),
            branches=("there",),
        ),
    )
    assert isinstance(event, ViewChange)
    assert (event.members, event.joined, event.stayed) == ((ANNA, CARL), (CARL,), (ANNA,))
    assert event.departed == (Departed("bert", f"{B:016x}", "failed"),)
    assert (event.view_id, event.branches) == (f"{START + 9:016x}-{A:016x}-1", ("there",))
    assert (event.kind, event.lamport, event.timestamp) == ("view", START + 9, time_of(START + 9))


def test_each_record_is_a_message_with_the_name_of_its_sender_and_its_view() -> None:
    stream = a_stream()
    view = one(stream, an_install(A, names=("anna",)))
    assert isinstance(view, ViewChange)
    found = messages(stream, a_chunk(b"x", b"", b"yy", seq=7, timestamp=START + 3))
    assert [(m.sender, m.sender_id, m.seq, m.record, m.value) for m in found] == [
        ("anna", ANNA.id, 7, 0, b"x"),
        ("anna", ANNA.id, 7, 1, b""),
        ("anna", ANNA.id, 7, 2, b"yy"),
    ]
    assert {(m.kind, m.group_name, m.view_id, m.lamport) for m in found} == {
        ("data", "prices", view.view_id, START + 3)
    }
    assert {(m.key, m.headers, m.sent_timestamp) for m in found} == {(None, (), time_of(START + 3))}


def test_a_record_has_its_key_its_headers_and_its_transaction() -> None:
    headers = encode_headers([("trace", b"7")])
    payload = laid_out([b"x", b"y"], keys=[b"k", None], headers=[headers, b""], label=encode_label(a_label("query", 5)))
    event = one(a_stream(), chunk_of(a_message(payload=payload)))
    assert isinstance(event, Batch)
    assert (event.values(), event.keys(), event.txn) == ([b"x", b"y"], [b"k", None], "query/5")
    assert [(m.value, m.key, m.headers, m.txn) for m in event.messages()] == [
        (b"x", b"k", (("trace", b"7"),), "query/5"),
        (b"y", None, (), "query/5"),
    ]
    shown = json.loads(json_line(event.messages()[0]))
    assert (shown["key"], shown["headers"], shown["txn"]) == ("k", [{"key": "trace", "value": "7"}], "query/5")


def test_a_batch_has_the_records_end_to_end() -> None:
    event = one(a_stream(), a_chunk(b"one", b"two"))
    assert isinstance(event, Batch)
    assert (len(event), event.values(), event.offsets.tolist()) == (2, [b"one", b"two"], [0, 3, 6])
    assert event.data.tobytes() == b"onetwo"
    assert event.position == event.messages()[0].position


def test_a_sender_without_a_name_goes_by_its_id() -> None:
    stream = a_stream()
    assert messages(stream, a_chunk(b"x"))[0].sender == ANNA.id
    view = one(stream, an_install(A, names=("",)))
    assert isinstance(view, ViewChange)
    assert view.members == (Peer(ANNA.id, ANNA.id),)


def test_one_that_has_left_keeps_its_name_for_what_is_still_under_way() -> None:
    stream = a_stream(Service.RSO)
    one(stream, an_install(A, B, names=("anna", "bert")))
    one(stream, an_install(A, names=("anna",), start=START + 5, departed=(Departure(B, "bert", "left"),)))
    assert messages(stream, a_chunk(b"late", source=B, timestamp=START + 4))[0].sender == "bert"


def test_positions_sort_as_delivered_with_views_and_gaps_among_them() -> None:
    stream = a_stream()
    delivered: list[Chunk | Install | GapEffect] = [
        an_install(A, C, names=("anna", "carl")),
        a_chunk(*[b"r"] * 300, source=A, seq=5, timestamp=START + 1),
        a_chunk(b"tie", source=C, seq=1, timestamp=START + 1),
        an_install(A, names=("anna",), start=START + 0x10),
        a_chunk(b"later", source=A, seq=0x10_0000, timestamp=START + 0x11),
        GapEffect("behind", B),
        an_install(A, names=("anna",), start=START + 0x1000),
        a_chunk(b"last", source=A, seq=0x10_0001, timestamp=START + 0x1001),
    ]
    positions = [
        event.position
        for item in delivered
        for batch in stream.events(item)
        for event in (batch.messages() if isinstance(batch, Batch) else [batch])
    ]
    assert len(positions) == 307
    assert positions == sorted(set(positions))
    assert len({len(position) for position in positions}) == 1


def test_positions_in_uu_follow_the_arrivals() -> None:
    stream = a_stream(Service.UU)
    found = [
        *messages(stream, a_chunk(b"late", source=C, seq=9, timestamp=START + 50)),
        *messages(stream, a_chunk(b"early", source=A, seq=1, timestamp=START + 1)),
    ]
    assert found[0].position < found[1].position
    assert [message.view_id for message in found] == [None, None]


def test_a_gap_says_why_and_who_goes_on() -> None:
    stream = a_stream()
    one(stream, an_install(A, names=("anna",)))
    event = one(stream, GapEffect("behind the cut", B, unsure=3))
    assert isinstance(event, Gap)
    assert (event.kind, event.reason, event.unsure, event.member_id) == ("gap", "behind the cut", 3, BERT.id)


def test_the_time_of_a_timestamp_is_exact_to_the_microsecond() -> None:
    at = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    wall = round(at.timestamp()) * 10**9 + 123_456_000
    assert time_of(timestamp_at(wall) + 5) == at
