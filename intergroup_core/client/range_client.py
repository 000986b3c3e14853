"""Fetches a range of a group's log from another site without an event loop, for a process that only reads.

It becomes a log of its own in a directory that the caller provides, checked against what was planned.
"""

from __future__ import annotations

import secrets
import socket
import time
from pathlib import Path

from intergroup_core.client.channel import VERSION, Decoder, Kind, Said, encode, failure
from intergroup_core.client.fetching import Keeper
from intergroup_core.errors import ChannelBroken, RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.chain import Described
from intergroup_core.log.cut import EntryCut
from intergroup_core.log.cut_codec import listed_cut
from intergroup_core.log.reader import LogReader
from intergroup_core.log.transfer import RangeSink
from intergroup_core.log.writer import Durability, create_log, open_log
from intergroup_core.runtime.disk import FileDisk

READ_BYTES = 1 << 20


def fetch_range(
    keeper: Keeper, group: str, service: Service, described: Described, directory: Path, timeout: float
) -> LogReader:
    """The log that a range was fetched into; RangeUnavailable where the site cannot give just that in time."""
    start, stop = described.start, described.stop
    if isinstance(start, EntryCut) or isinstance(stop, EntryCut):
        raise RangeUnavailable("a log of uu is read where it was made; run the task at the site that planned it")
    disk = FileDisk.locked(directory)
    try:
        create_log(disk, log=secrets.randbits(64) or 1, group=group, service=service, after=start, fetching=True)
        writer = open_log(disk, durability=Durability.MEMORY)
        try:
            sink = RangeSink(writer, start, stop, expected=described)
            with _Visit(keeper, group, time.monotonic() + timeout) as visit:
                visit.ask(Kind.FETCH, [service.value, listed_cut(start), listed_cut(stop)])
                while (said := visit.next()).kind is Kind.BLOCK:
                    if not isinstance(said.body, bytes):
                        raise ChannelBroken(f"{keeper} sent a block that is none")
                    sink.take(said.body)
            if not sink.finished:
                raise RangeUnavailable(f"{keeper} sent less than it was asked for; fetch it from another site")
            writer.flush(Durability.OS)
        finally:
            writer.close()
    finally:
        disk.close()
    return LogReader(FileDisk(directory))


class _Visit:
    """A conversation with one keeper of one group, until a deadline."""

    def __init__(self, keeper: Keeper, group: str, deadline: float) -> None:
        self._keeper = keeper
        self._deadline = deadline
        self._decoder = Decoder()
        self._heard: list[Said] = []
        self._number = 0
        try:
            self._socket = socket.create_connection((keeper.host, keeper.port), timeout=self._left())
        except OSError as error:
            raise RangeUnavailable(f"{keeper} cannot be reached ({error}); is it up, and is its port open?") from error
        try:
            self.ask(Kind.HELLO, [VERSION, group, keeper.token])
            self.next()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> _Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, kind: Kind, body: object) -> None:
        self._number += 1
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(encode(kind, self._number, body))
        except OSError as error:
            raise self._silent(error) from error

    def next(self) -> Said:
        while not self._heard:
            try:
                self._socket.settimeout(self._left())
                data = self._socket.recv(READ_BYTES)
            except OSError as error:
                raise self._silent(error) from error
            if not data:
                raise RangeUnavailable(f"{self._keeper} ended the conversation; fetch it from another site")
            self._heard += self._decoder.feed(data)
        said = self._heard.pop(0)
        if said.kind is Kind.FAILURE:
            raise failure(said.body)
        return said

    def _left(self) -> float:
        return max(1e-3, self._deadline - time.monotonic())

    def _silent(self, error: OSError) -> RangeUnavailable:
        return RangeUnavailable(f"{self._keeper} does not answer ({error}); fetch it from another site")
