"""Events as lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from intergroup_core.api.events import Departed, Gap, Message, Peer, ViewChange, position
from intergroup_core.cli.rows import COLUMNS, json_line, text_line

AT = datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=UTC)


def a_message(value: bytes = b"42.5", sender: str = "desk-1") -> Message:
    return Message(
        group_name="prices",
        sender=sender,
        sender_id="00000000000000aa",
        seq=17,
        record=2,
        position=position(99, 0xAA, 17, 2),
        timestamp=AT,
        lamport=99,
        view_id="v1",
        value=value,
    )


def a_view_change() -> ViewChange:
    return ViewChange(
        group_name="prices",
        view_id="v2",
        members=(Peer("desk-1", "aa"), Peer("desk-3", "cc")),
        joined=(Peer("desk-3", "cc"),),
        departed=(Departed("desk-2", "bb", "failed"), Departed("desk-4", "dd", "left")),
        stayed=(Peer("desk-1", "aa"),),
        branches=("v0",),
        position=position(100, 0xAA, 1, 0),
        timestamp=AT,
        lamport=100,
    )


def a_gap() -> Gap:
    return Gap(
        group_name="prices",
        reason="behind the cut",
        unsure=2,
        member_id="ee",
        position=position(100, 0xAA, 1, 7),
        timestamp=AT,
        lamport=100,
    )


def test_a_record_has_every_column_in_order() -> None:
    row = json.loads(json_line(a_message()))
    assert tuple(row) == COLUMNS
    assert row == {
        "kind": "data",
        "group_name": "prices",
        "sender": "desk-1",
        "sender_id": "00000000000000aa",
        "seq": 17,
        "record": 2,
        "position": "0000000000000063-00000000000000aa-0000000000000011-00000002",
        "timestamp": "2026-07-01T12:00:00.000005Z",
        "sent_timestamp": "2026-07-01T12:00:00.000005Z",
        "lamport": 99,
        "view_id": "v1",
        "key": None,
        "value": "42.5",
        "headers": [],
        "members": None,
        "joined": None,
        "departed": None,
        "branches": None,
        "txn": None,
    }


def test_bytes_that_are_not_text_come_as_base64() -> None:
    row = json.loads(json_line(a_message(b"\xff\x00")))
    assert (row["value"], row["value_base64"]) == (None, "/wA=")


def test_a_line_is_one_line_whatever_is_in_it() -> None:
    strange = "a\nb\u2028c\x1b[2J".encode()
    assert len(json_line(a_message(strange)).splitlines()) == 1
    assert json.loads(json_line(a_message(strange)))["value"].encode() == strange
    assert len(text_line(a_message(strange)).splitlines()) == 1
    assert "\x1b" not in text_line(a_message(strange, sender="desk\x1b[31m"))


def test_a_view_has_names_and_its_columns() -> None:
    row = json.loads(json_line(a_view_change()))
    assert tuple(row) == COLUMNS
    assert (row["kind"], row["view_id"], row["lamport"]) == ("view", "v2", 100)
    assert (row["members"], row["joined"]) == (["desk-1", "desk-3"], ["desk-3"])
    assert (row["departed"], row["branches"]) == (["desk-2", "desk-4"], ["v0"])
    assert [row[column] for column in ("sender", "seq", "value", "headers", "txn")] == [None] * 5


def test_a_gap_says_why() -> None:
    row = json.loads(json_line(a_gap()))
    assert (row["kind"], row["reason"], row["value"]) == ("gap", "behind the cut", None)


def test_people_see_who_and_what() -> None:
    assert text_line(a_message()).endswith("  desk-1  42.5")
    assert text_line(a_message(b"\xff")).endswith(r"  \xff")
    assert text_line(a_view_change()).endswith(
        "-- view: desk-1, desk-3; joined desk-3; failed desk-2; left desk-4; merged with 1 other view"
    )
    assert "-- gap: behind the cut; of 2 messages" in text_line(a_gap())
