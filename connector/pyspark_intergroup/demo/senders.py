"""Senders of the demonstration: each a site of its own, which counts what it was told is kept."""

from __future__ import annotations

import threading
from pathlib import Path

import intergroup_core as ig
from intergroup_core.errors import IntergroupError

JOIN_SECONDS = 30.0
PACE_SECONDS = 0.2
"""Between two records of a sender: slow enough to be read by people."""
STOP_SECONDS = 30.0


class Sender:
    """Sends numbered orders from a thread of its own, until it is told to stop or its agent is gone."""

    def __init__(self, name: str, group: str, home: Path) -> None:
        self.name = name
        self.acknowledged: list[str] = []
        """What is in its site's log, delivered in the one order, by the word of `send`."""
        self.failure: Exception | None = None
        self._member = ig.open(
            group, sender=True, reads=False, name=name, home=home, interface="lo", timeout=JOIN_SECONDS
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, name=f"sender-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send no more; returns once the last record is acknowledged."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def leave(self) -> None:
        self.stop()
        try:
            self._member.close()
        except (IntergroupError, OSError) as error:
            self.failure = self.failure or error  # its agent is gone, and the group has noticed

    def _send(self) -> None:
        number = 0
        while not self._stopping.wait(PACE_SECONDS):
            number += 1
            order = f"{self.name} {number}"
            try:
                self._member.send(order.encode(), ack="delivered")
            except (IntergroupError, OSError) as error:
                self.failure = error
                return
            self.acknowledged.append(order)
