"""Who is there: names of sites by the groups they have members in, gathered a few at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import GroupKey
from intergroup_core.wire.hierarchy import Roll as Names

SECOND = 1_000_000_000


class Roll:
    """Sites and groups with the time at which they were last heard of; rough, and bounded."""

    MAX_ENTRIES = 20_000
    KEPT_NS = 300 * SECOND
    """Who was not heard of for so long is not listed."""

    def __init__(self) -> None:
        self._heard: dict[tuple[SiteId, int], tuple[str, int]] = {}

    def said(self, site: SiteId, name: str, keys: Iterable[GroupKey], now: int) -> None:
        """A site speaks for itself."""
        for key in keys:
            self._put((site, key.group), name, now)

    def told(self, names: Names, now: int) -> None:
        """Somebody speaks of others."""
        for entry, name in names.items():
            self._put(entry, name, now)

    def _put(self, entry: tuple[SiteId, int], name: str, now: int) -> None:
        if entry in self._heard or len(self._heard) < self.MAX_ENTRIES:
            self._heard[entry] = (name, now)

    def forget(self, site: SiteId) -> None:
        for entry in [entry for entry in self._heard if entry[0] == site]:
            del self._heard[entry]

    def some(self, most: int) -> Names:
        """A few entries, others every time."""
        chosen = dict(islice(self._heard.items(), most))
        for entry, heard in chosen.items():
            del self._heard[entry]
            self._heard[entry] = heard
        return {entry: name for entry, (name, _) in chosen.items()}

    def of(self, group: int, now: int) -> dict[SiteId, str]:
        return {
            site: name for (site, tag), (name, at) in self._heard.items() if tag == group and now - at <= self.KEPT_NS
        }
