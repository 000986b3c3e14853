"""Sites that go on sending numbered records while something else happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import intergroup_core as ig
from intergroup_core.api.blocking import BlockingMember
from intergroup_core.errors import AgentGone
from tests.integration.agents import opened
from tests.integration.groups import PATIENCE_SECONDS, loopback
from tests.spark.drivers import Row
from tests.spark.query import COLUMNS

PAUSE_SECONDS = 0.25
MOST_RECORDS = 12
LAST = b"that is all"


class Numbered:
    """One site that sends; each record says whose it is and which."""

    def __init__(self, member: BlockingMember, name: str) -> None:
        self._member = member
        self.name = name
        self.sent: list[str] = []
        """Acknowledged as kept there in the group's order."""
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._send)

    def joined(self) -> None:
        self._member.joined(PATIENCE_SECONDS)

    def begin(self) -> None:
        self._thread.start()

    def _send(self) -> None:
        try:
            while not self._stopped.wait(PAUSE_SECONDS):
                self.send_more(1 + len(self.sent) % MOST_RECORDS)
        except BaseException as failure:
            self._failure = failure

    def send(self, records: Sequence[str]) -> None:
        self._member.send_many([record.encode() for record in records], ack="delivered")
        self.sent += records

    def send_more(self, count: int = 10) -> list[str]:
        """The next ones; which they are."""
        first = len(self.sent)
        self.send([f"{self.name}:{number}" for number in range(first, first + count)])
        return self.sent[first:]

    def send_last(self) -> None:
        self._member.send_many([LAST], ack="delivered")

    def end(self) -> None:
        """No more; what was sent is acknowledged."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_SECONDS)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_SECONDS)
        with suppress(AgentGone):
            self._member.close()


@contextmanager
def numbered(group: str, homes: Sequence[Path], delivery: str = "rto") -> Iterator[list[Numbered]]:
    """Senders that are all in one view before they begin."""
    with ExitStack() as stack:
        senders: list[Numbered] = []
        for number, home in enumerate(homes):
            name = f"s{number}"
            member = opened(group, home, config=loopback(), sender=True, name=name, delivery=delivery)
            senders.append(Numbered(member, name))
            stack.callback(senders[-1].close)
            senders[-1].joined()
        yield senders


def read_all(group: str, home: Path) -> list[Row]:
    """Everything from the first record to the one that says so, as one who reads by himself sees it."""
    with opened(group, home, config=loopback(), start="earliest") as reader:
        rows: list[Row] = []
        while not rows or rows[-1]["value"] != LAST.decode():
            event = reader.read(timeout=PATIENCE_SECONDS)
            assert event is not None, rows[-3:]
            assert not isinstance(event, ig.Gap), event
            rows.append(as_row(event))
        return rows


def up_to_last(rows: Sequence[Row]) -> list[Row]:
    """What comes behind the last record is nobody's: senders that have nothing to say leave sooner or later."""
    return list(rows[: 1 + next(at for at, row in enumerate(rows) if row["value"] == LAST.decode())])


def as_row(event: Any) -> Row:
    row = {column: getattr(event, column, None) for column in COLUMNS}
    if isinstance(event, ig.ViewChange):
        return row | {"members": [peer.name for peer in event.members]}
    return row | {"value": event.value.decode()}
