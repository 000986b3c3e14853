"""The process and network fault detector (T5.6), with time-outs that follow what was observed (M8)."""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.config import MembershipConfig
from intergroup_core.ids import MemberId

MILLISECOND = 1_000_000


class FaultDetector:
    """Suspects a watched member after a silence much longer than its usual ones.

    Only silences that ended count as usual. A check that comes late means that this member itself stood still: then
    nobody is blamed for the time in between.
    """

    CHECKS = 8
    """Checks in the shortest time-out."""
    PATIENCE = 3.0
    """Times the longest usual silence that a member may be silent."""
    DECAY = 0.98
    """By which the longest silence seen fades from check to check."""

    def __init__(self, config: MembershipConfig) -> None:
        self._floor = round(config.suspect_ms * MILLISECOND)
        self._ceiling = round(config.suspect_max_ms * MILLISECOND)
        self._step = self._floor // self.CHECKS
        self._heard: dict[MemberId, int] = {}
        self._longest: dict[MemberId, float] = {}
        self._suspected: set[MemberId] = set()
        self._check_at: int | None = None
        self.pauses = 0
        """How often this member found that it had stood still."""

    def watch(self, members: Iterable[MemberId], now: int) -> None:
        """Exactly these members; for those not watched before the silence begins now."""
        watched = set(members)
        for member in self._heard.keys() - watched:
            del self._heard[member]
            self._longest.pop(member, None)
            self._suspected.discard(member)
        if not self._heard:
            self._check_at = now + self._step
        for member in watched - self._heard.keys():
            self._heard[member] = now

    def heard(self, member: MemberId, now: int) -> None:
        last = self._heard.get(member)
        if last is not None:
            self._heard[member] = now
            if now - last > self._step and not self.stood_still(now):
                self._longest[member] = max(now - last, self._longest.get(member, 0.0))
            if self._suspected:
                self._suspected.discard(member)

    def stood_still(self, now: int) -> bool:
        """Whether a check is so late that this member itself must have been paused."""
        return bool(self._heard) and self._check_at is not None and now - self._check_at > self._floor // 2

    def suspects(self, member: MemberId) -> bool:
        return member in self._suspected

    @property
    def all_suspected(self) -> bool:
        """Whether nobody that is watched is heard any more."""
        return self._suspected.issuperset(self._heard)

    def next_deadline(self) -> int | None:
        return self._check_at if self._heard else None

    def tick(self, now: int) -> list[MemberId]:
        """Members that are suspected as of now and were not before."""
        if self._check_at is None or now < self._check_at:
            return []
        paused = self.stood_still(now)
        self._check_at = now + self._step
        if paused:
            self.pauses += 1
            self._heard = dict.fromkeys(self._heard, now)
            return []
        for member in self._longest:
            self._longest[member] *= self.DECAY
        silent = [member for member, heard in self._heard.items() if now - heard >= self._timeout(member)]
        newly = [member for member in silent if member not in self._suspected]
        self._suspected.update(newly)
        return newly

    def _timeout(self, member: MemberId) -> float:
        return min(self._ceiling, max(self._floor, self.PATIENCE * self._longest.get(member, 0.0)))
