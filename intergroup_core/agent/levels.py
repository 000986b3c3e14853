"""How many log-holding sites must have something: before a sender is told that it is safe, before a reader plans it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

from intergroup_core.errors import ConfigError

_MORE = re.compile(r"k:([1-9][0-9]{0,2})")


class Level(Enum):
    """By name."""

    TAKEN = "taken"
    """The queue to the group has it."""
    SENT = "sent"
    """It left this site."""
    DELIVERED = "delivered"
    """This site's member delivered it in order, and its log has it."""
    LOCAL = "local"
    """The same, for one who reads."""
    MORE = "k:N"
    """So many log-holding sites besides this one have it."""
    MAJORITY = "majority"
    """More than half of the log-holding sites have it, this one included where it is one."""
    ALL = "all"
    """Every live one has it."""
    STABLE = "stable"
    """The same, for one who reads: every sender and every live log-holding site, so that no repair falls behind it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A level, and of `k:N` the number."""

    level: Level
    more: int = 0

    def __str__(self) -> str:
        return f"k:{self.more}" if self.level is Level.MORE else self.level.value

    @property
    def counts_sites(self) -> bool:
        return self.level in (Level.MORE, Level.MAJORITY)

    @property
    def asks_others(self) -> bool:
        """Whether it depends on more than this site."""
        return self.counts_sites or self.level is Level.ALL

    def others(self, holders: Collection[int], me: int) -> int:
        """How many of the log-holding sites besides this one must have it."""
        if self.level is Level.MORE:
            return self.more
        if self.level is Level.MAJORITY and holders:
            return len(holders) // 2 + 1 - (me in holders)
        return 0


ACKS = (Level.TAKEN, Level.SENT, Level.DELIVERED, Level.MORE, Level.MAJORITY, Level.ALL)
READ_LEVELS = (Level.LOCAL, Level.MORE, Level.MAJORITY, Level.STABLE)


def ack_of(text: Any) -> Wanted:
    return _wanted(text, "ack", ACKS)


def read_level_of(text: Any) -> Wanted:
    return _wanted(text, "read_level", READ_LEVELS)


def _wanted(text: Any, setting: str, allowed: tuple[Level, ...]) -> Wanted:
    if isinstance(text, str):
        if found := _MORE.fullmatch(text):
            return Wanted(Level.MORE, int(found[1]))
        for level in allowed:
            if level.value == text and level is not Level.MORE:
                return Wanted(level)
    names = ", ".join(level.value for level in allowed)
    raise ConfigError(f"{setting} is {text!r:.40}; it must be one of {names}, where N is a number of sites from 1 on")


LOCAL, STABLE = Wanted(Level.LOCAL), Wanted(Level.STABLE)
