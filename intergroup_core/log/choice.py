"""Which messages of a log are wanted, by what they are staged for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from intergroup_core.log.body import stated_records
from intergroup_core.log.places import Piece
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label


class Choice(Protocol):
    """Of messages with and without a label."""

    @property
    def plain(self) -> bool:
        """Whether those without a label are wanted."""

    @property
    def every(self) -> bool:
        """Whether all with a label are."""

    def may_take(self, piece: Piece) -> bool:
        """Whether there can be something in a piece of a data entry, by a look at how its messages begin."""

    def takes(self, label: Label, source: int, seq: int) -> bool:
        """Whether a message with this label is wanted."""


class All:
    """Whatever is there."""

    plain = every = True

    def may_take(self, piece: Piece) -> bool:
        return True

    def takes(self, label: Label, source: int, seq: int) -> bool:
        return True


class Plain:
    """Nothing that is staged."""

    plain, every = True, False

    def may_take(self, piece: Piece) -> bool:
        return not piece.entry.header.staged or stated_records(piece.chunk(), staged=False) > 0

    def takes(self, label: Label, source: int, seq: int) -> bool:
        return False


class Counting:
    """What the attempts that count staged for one transaction."""

    plain = every = False

    def __init__(self, txn: str, attempts: Sequence[Staged]) -> None:
        self._txn = txn
        self._attempts: dict[tuple[int, int], list[Staged]] = {}
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        """Seqs of each sender."""
        for staged in attempts:
            sender = staged.sender
            self._attempts.setdefault((staged.attempt, sender), []).append(staged)
            self._first[sender] = min(staged.first_seq, self._first.get(sender, staged.first_seq))
            self._last[sender] = max(staged.last_seq, self._last.get(sender, 0))

    def may_take(self, piece: Piece) -> bool:
        header = piece.entry.header
        if not header.staged or header.source not in self._last:
            return False
        return header.first_seq <= self._last[header.source] and self._first[header.source] <= header.last_seq

    def takes(self, label: Label, source: int, seq: int) -> bool:
        found = self._attempts.get((label.attempt, source), ())
        return any(staged.first_seq <= seq <= staged.last_seq for staged in found) and label.txn == self._txn
