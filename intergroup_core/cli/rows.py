"""Events as lines: JSON objects whose keys are the columns of a Spark read, or text for people."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any

from intergroup_core.api.events import Departed, Event, Gap, Message, Peer, ViewChange

Row = dict[str, Any]

COLUMNS = (
    "kind",
    "group_name",
    "sender",
    "sender_id",
    "seq",
    "record",
    "position",
    "timestamp",
    "sent_timestamp",
    "lamport",
    "view_id",
    "key",
    "value",
    "headers",
    "members",
    "joined",
    "departed",
    "branches",
    "txn",
)
"""In this order. A value that is not UTF-8 comes as `value_base64` and `value` is null; a gap has a `reason` too."""


def json_line(event: Event) -> str:
    return json.dumps(row_of(event))


def row_of(event: Event) -> Row:
    """Every column, null where a kind of event has nothing to say."""
    row: Row = dict.fromkeys(COLUMNS)
    row |= {
        "kind": event.kind,
        "group_name": event.group_name,
        "position": event.position,
        "timestamp": _iso(event.timestamp),
        "lamport": event.lamport,
    }
    match event:
        case Message():
            row |= {
                "sender": event.sender,
                "sender_id": event.sender_id,
                "seq": event.seq,
                "record": event.record,
                "sent_timestamp": _iso(event.sent_timestamp),
                "view_id": event.view_id,
                "txn": event.txn,
                "headers": [{"key": key} | _text("value", value) for key, value in event.headers],
            }
            row |= _text("key", event.key)
            row |= _text("value", event.value)
        case ViewChange():
            row |= {
                "view_id": event.view_id,
                "members": _names(event.members),
                "joined": _names(event.joined),
                "departed": _names(event.departed),
                "branches": list(event.branches),
            }
        case Gap():
            row["reason"] = event.reason
    return row


def row_of_columns(columns: Row) -> Row:
    """The same from the columns of a log, with the `reason` of a gap among them."""
    row: Row = dict.fromkeys(COLUMNS)
    row |= {name: columns[name] for name in COLUMNS if name not in ("key", "value", "headers")}
    for name in ("timestamp", "sent_timestamp"):
        row[name] = _iso(columns[name]) if columns[name] is not None else None
    if columns["kind"] == "data":
        row["headers"] = [{"key": each["key"]} | _text("value", each["value"]) for each in columns["headers"]]
        row |= _text("key", columns["key"])
        row |= _text("value", columns["value"])
    elif columns["kind"] == "gap":
        row["reason"] = columns["reason"]
    return row


def text_line(event: Event) -> str:
    """For people; what a sender wrote cannot move the cursor of who reads it."""
    at = event.timestamp.astimezone().strftime("%H:%M:%S.%f")
    match event:
        case Message():
            return f"{at}  {_printable(event.sender)}  {_shown(event.value)}"
        case ViewChange():
            return f"{at}  -- view: {_described(event)}"
        case Gap():
            unsure = f"; of {event.unsure} messages sent here nobody knows whether others have them" * bool(
                event.unsure
            )
            return f"{at}  -- gap: {event.reason}{unsure}"


def _described(view: ViewChange) -> str:
    parts = [_listed(view.members) or "nobody sends"]
    if view.joined:
        parts.append(f"joined {_listed(view.joined)}")
    by_reason: dict[str, list[Departed]] = {}
    for departed in view.departed:
        by_reason.setdefault(departed.reason, []).append(departed)
    parts += [f"{reason} {_listed(who)}" for reason, who in by_reason.items()]
    if view.branches:
        parts.append(f"merged with {len(view.branches)} other view{'s' * (len(view.branches) > 1)}")
    return "; ".join(parts)


def _listed(peers: tuple[Peer, ...] | list[Departed]) -> str:
    return ", ".join(_printable(peer.name) for peer in peers)


def _names(peers: tuple[Peer, ...] | tuple[Departed, ...]) -> list[str]:
    return [peer.name for peer in peers]


def _shown(value: bytes) -> str:
    try:
        return _printable(value.decode())
    except UnicodeDecodeError:
        return repr(value)[2:-1]


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(name: str, value: bytes | None) -> Row:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}
