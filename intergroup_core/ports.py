"""What the pure part asks of the world, and its engines of each other, as small Protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from intergroup_core.ids import Instant, MemberId, SiteId, Timestamp


class Distances(Protocol):
    """One-way latency estimates (T2.4)."""

    def to(self, member: MemberId) -> int:
        """The estimated one-way delay to a member, in nanoseconds."""


class ConstantDistance:
    """The same distance to everybody, where nothing measures (R4)."""

    def __init__(self, distance_ns: int) -> None:
        self._distance_ns = distance_ns

    def to(self, member: MemberId) -> int:
        return self._distance_ns


class Told(NamedTuple):
    """What the hierarchy says of a group: everybody counted has this much."""

    upto: Timestamp
    members: int
    room: int
    """Frames of one sender that all of them take beyond that."""
    slowest: str
    """What people call the site that is farthest behind."""
    at: int
    """When it was said, in monotonic nanoseconds."""


class Control(Protocol):
    """The control process of a member's site, as far as the member's group is concerned (T2, H1)."""

    @property
    def place(self) -> tuple[SiteId, SiteId | None]:
        """This site, and the coordinator whose local group it is in."""

    def placed(self, member: MemberId, site: SiteId, coordinator: SiteId | None) -> None:
        """Another member said where its site is."""

    def exchanged(self, member: MemberId, round_trip_us: int) -> None:
        """Another member answered a request of this one; the time between them, its own delay left out (R4)."""

    def acknowledge(self, epoch: int, upto: Timestamp, room: int, *, pressing: bool, now: Instant) -> None:
        """What this member has in an epoch and still takes; pressing while somebody's buffers wait for it."""

    def withdraw(self) -> None:
        """This member is not waited for any more."""

    def told(self, epochs: Iterable[int], now: int) -> Told | None:
        """What everybody counted has who is in one of these epochs."""

    def roll(self, now: int) -> tuple[str, ...]:
        """Names of sites that have a member in the group, as far as they were heard of."""

    def counted(self, epoch: int, now: int) -> bool:
        """Whether every coordinator waits for this member."""

    def shares(self, member: MemberId) -> bool:
        """Whether another member goes by what is said in this hierarchy, as far as is known of where it is."""

    def reach(self, epoch: int, reaches: Mapping[MemberId, tuple[int, Timestamp]], now: Instant) -> None:
        """What this member has of an epoch that a repair ends: seq and promise by source; nothing when it is over."""

    def cut(self, epoch: int) -> dict[MemberId, tuple[int, Timestamp]]:
        """The most that anybody is known to have of it (T5.4.2)."""


class LogFile(Protocol):
    """A file that grows at its end."""

    @property
    def size(self) -> int:
        """In bytes, what is not durable yet included."""

    def appendv(self, parts: Sequence[bytes | memoryview]) -> None:
        """Write the parts end to end; DiskFull may leave some of them behind, for the caller to cut."""

    def truncate(self, size: int) -> None:
        """Cut the file back; nothing is behind its end then, old bytes neither."""

    def sync(self) -> None:
        """The content is durable once this returns; a name that is new is so after `Disk.sync_names` only."""

    def close(self) -> None:
        """Old bytes behind its end go as well, where nobody has them mapped."""


class Disk(Protocol):
    """One directory of a log. Nothing is durable, nor in any order, before it is synced."""

    @property
    def where(self) -> str:
        """What people call the directory."""

    def names(self) -> list[str]:
        """Files in it, in no order."""

    def size(self, name: str) -> int:
        """In bytes, old ones behind the file's end included."""

    def create(self, name: str, *, end: bytes = b"") -> LogFile:
        """A new, empty file; one of that name is replaced.

        With a mark for its end it may be made of one that was retired, and then has that one's bytes behind its own,
        with the mark in front of them. After an append that was interrupted there may be none.
        """

    def reopen(self, name: str) -> LogFile:
        """A file that is there, to be continued at its end."""

    def cut(self, name: str, size: int) -> None:
        """Cut a file back that nobody writes, durably; who has it mapped sees no change."""

    def map(self, name: str, start: int = 0, stop: int | None = None) -> memoryview:
        """Bytes [start, stop) of a file, to be read only; None stands for its end. As long as they are looked at, the
        file is not made another one."""

    def rename(self, old: str, new: str) -> None:
        """In one step: whoever looks sees the old file of that name or the new one."""

    def remove(self, name: str) -> None: ...

    def retire(self, name: str) -> None:
        """Remove a file that nobody asks for any more; a later one may be made of it, unless somebody looks at it."""

    @property
    def spares(self) -> int:
        """Files that were retired and still take room."""

    def drop_spares(self) -> None:
        """Nothing will be made of them; in any thread."""

    def sync_names(self) -> None:
        """Names made, changed and removed are durable once this returns."""
