"""Transactions of one group through the site's agent: rows are staged, and then all of them count or none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from os import PathLike

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.staging import ANSWER_SECONDS, Commit, stage_bodies, staged_of
from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import Rows


class TransactionClient:
    """A lease on the site's sending member; for one thread."""

    def __init__(
        self,
        group: str,
        config: Config,
        home: str | PathLike[str] | None = None,
        *,
        name: str | None = None,
        timeout: float,
    ) -> None:
        self.group = group
        self._config = config
        self._attempt = 0
        deadline = time.monotonic() + timeout
        self._connection = Connection.to_agent(home, idle_s=config.agent.idle_s, advertise=config.agent.advertise)
        try:
            wanted = {
                "group": group,
                "delivery": Service.RTO.value,
                "sender": True,
                "name": name,
                "config": config.to_mapping(),
            }
            opened = self._connection.request(Kind.OPEN, wanted, max(0.0, deadline - time.monotonic()))
            self._handle: int = opened["handle"]
            self._connection.request(Kind.JOINED, [self._handle], max(0.0, deadline - time.monotonic()))
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._connection.alive

    def stage(self, label: Label | None, rows: Rows) -> None:
        """Hand rows over, waiting until the group takes them; MessageTooLarge before any of them goes."""
        self._attempt = label.attempt if label is not None else 0
        for body in stage_bodies(self._handle, self.group, label, rows, self._config):
            self._connection.request(Kind.STAGE, body)

    def staged(self, ack: str, seconds: float) -> Staged | None:
        """Until all that was staged since the last call has come so far; None where nothing was."""
        answer = self._connection.request(Kind.STAGED, [self._handle, ack, seconds], seconds + ANSWER_SECONDS)
        return staged_of(answer, self._attempt)

    def commit(
        self,
        app: str,
        run: str,
        version: int,
        attempts: Sequence[Staged],
        *,
        lasting: bool,
        ack: str,
        seconds: float,
        timeout_s: int,
    ) -> bool:
        """Make the rows of these attempts visible; whether they were not before.

        TransactionVoid where they never will be, AckUnreached where too few sites can be reached in time.
        """
        wanted = Commit(app, run, version, tuple(attempts), lasting, ack, seconds, timeout_s)
        return bool(self._connection.request(Kind.TRANSACT, wanted.body(self._handle), seconds + ANSWER_SECONDS))

    def abandon(self, label: Label) -> None:
        """Free what is held for a transaction that nobody will commit; one that was proposed stays."""
        self._connection.request(Kind.ABANDON, [self._handle, label.app, label.run, label.version], ANSWER_SECONDS)

    def committed(self, app: str) -> int | None:
        """The application's last version that is known to be committed."""
        version = self._connection.request(Kind.COMMITTED_VERSION, [self._handle, app], ANSWER_SECONDS)
        return int(version) if version is not None else None

    def close(self) -> None:
        self._connection.close()
