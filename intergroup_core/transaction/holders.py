"""Sites whose logs of a group others may rely on, by what was said of each last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from intergroup_core.ids import Timestamp, timestamp_span

MAX_HOLDERS = 256
"""Further sites are not taken in: what all of them say has to fit a message."""
_SECOND = 1_000_000_000


class Holder(NamedTuple):
    """The last word on a site."""

    site: int
    name: str
    holds: bool
    said: Timestamp
    seconds: int
    """For how long it counts; that it does not hold is remembered for as long, for an older word may come later."""
    since: Timestamp
    """From when on it has held the log, as it has said again and again."""

    @property
    def expires(self) -> int:
        return self.said + timestamp_span(self.seconds * _SECOND)


class Holders:
    """One word for each site; the later one counts, whichever comes first, so that branches can be put together."""

    def __init__(self) -> None:
        self._last: dict[int, Holder] = {}

    def __iter__(self) -> Iterator[Holder]:
        return iter(sorted(self._last.values()))

    def say(self, word: Holder) -> bool:
        """Whether a word was news."""
        known = self._last.get(word.site)
        if known is not None and known.said >= word.said:
            return False
        self._forget_expired(word.said)
        if known is None and len(self._last) >= MAX_HOLDERS:
            return False
        self._last[word.site] = word
        return True

    def at(self, timestamp: int) -> dict[int, str]:
        """Who holds the log at a timestamp, and what people call them; a dead one counts until it expires."""
        return {word.site: word.name for word in self if word.holds and word.since <= timestamp <= word.expires}

    def held_since(self, site: int, timestamp: int) -> int:
        """From when on a site has held the log without a break, by what was said of it; 0 where it does not."""
        word = self._last.get(site)
        return word.since if word is not None and word.holds and timestamp <= word.expires else 0

    def word_on(self, site: int) -> Holder | None:
        """What was said of a site last."""
        return self._last.get(site)

    def _forget_expired(self, timestamp: int) -> None:
        for site in [site for site, word in self._last.items() if word.expires < timestamp]:
            del self._last[site]
