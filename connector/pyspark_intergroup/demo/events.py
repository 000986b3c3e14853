"""What a reader of the group saw, from whichever side it looked: rows of a query, or events of a member."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import intergroup_core as ig
from intergroup_core.errors import IntergroupError

if TYPE_CHECKING:
    from pyspark.sql import Row

COLUMNS = "kind,sender,sender_id,seq,record,position,view_id,value,members"
"""Of a read: what the demonstration prints and compares."""
LOOK_SECONDS = 0.5


class Seen(NamedTuple):
    """One row; equal to another reader's exactly if both saw the same at this place."""

    kind: str
    position: str
    sender: str
    identity: tuple[str, int, int] | None
    """Sender id, seq and record of a data row."""
    value: str
    view: str
    members: tuple[str, ...] = ()
    """Of a view row: who sends from here on."""


def seen_in_row(row: Row) -> Seen:
    if row.kind == "data":
        identity = (row.sender_id, row.seq, row.record)
        return Seen("data", row.position, row.sender, identity, bytes(row.value).decode(), row.view_id)
    return Seen(row.kind, row.position, "", None, "", row.view_id or "", tuple(sorted(row.members or ())))


def seen_in_event(event: ig.Message | ig.ViewChange | ig.Gap) -> Seen:
    match event:
        case ig.Message():
            identity = (event.sender_id, event.seq, event.record)
            view = event.view_id or ""
            return Seen("data", event.position, event.sender, identity, event.value.decode(), view)
        case ig.ViewChange():
            members = tuple(sorted(peer.name for peer in event.members))
            return Seen("view", event.position, "", None, "", event.view_id, members)
        case ig.Gap():
            return Seen("gap", event.position, "", None, "", "")


def has_gone(rows: Sequence[Seen], name: str) -> bool:
    """Whether somebody who was in a view is not in the last one."""
    views = [row.members for row in rows if row.kind == "view"]
    return any(name in members for members in views) and name not in views[-1]


class Record:
    """Everything that one reader saw, in its order; one thread adds, another waits."""

    def __init__(self) -> None:
        self.rows: list[Seen] = []
        self.failure: Exception | None = None
        self._changed = threading.Condition()

    def add(self, rows: list[Seen]) -> None:
        with self._changed:
            self.rows += rows
            self._changed.notify_all()

    def until(self, holds: Callable[[list[Seen]], bool], seconds: float, alive: Callable[[], bool]) -> bool:
        """Whether something holds of the rows before so many seconds are over, or the reader has ended."""
        with self._changed:
            for _ in range(round(seconds / LOOK_SECONDS)):
                if self._changed.wait_for(lambda: holds(self.rows), LOOK_SECONDS):
                    return True
                if not alive():
                    return False
        return False


class Witness:
    """A second reader, at a site of its own and without Spark."""

    def __init__(self, group: str, home: Path) -> None:
        self.record = Record()
        self._member = ig.open(group, name="witness", home=home, interface="lo", start="earliest")
        self._thread = threading.Thread(target=self._read, name="witness", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        try:
            self._member.leave()
        except (IntergroupError, OSError) as error:
            self.record.failure = self.record.failure or error
        self._thread.join(LOOK_SECONDS)
        self._member.close()

    def _read(self) -> None:
        try:
            for event in self._member:
                self.record.add([seen_in_event(event)])
        except (IntergroupError, OSError) as error:
            self.record.failure = error
