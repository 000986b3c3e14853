"""Members that are not considered for a while: the blockSet (T5.2.3, M7, M9)."""

from __future__ import annotations

from intergroup_core.config import MembershipConfig
from intergroup_core.ids import MemberId

MILLISECOND = 1_000_000


class BlockSet:
    """Each stay is twice as long as the one before, up to a limit, so that a link that flaps calms down."""

    MOST_DOUBLINGS = 3
    MAX_REMEMBERED = 1_024
    """Members whose earlier blocks are remembered; the oldest are forgotten."""

    def __init__(self, config: MembershipConfig) -> None:
        self._stay = round(config.block_ms * MILLISECOND)
        self._until: dict[MemberId, int] = {}
        self._times: dict[MemberId, int] = {}
        self._blamed: set[MemberId] = set()

    def __contains__(self, member: object) -> bool:
        """Whether a member is blamed for what could not be recovered: nothing it says about membership counts."""
        return member in self._blamed

    def shuns(self, member: MemberId) -> bool:
        """Whether frames of a member start no repair, because it is blamed or did not answer the last time."""
        return member in self._until

    def blame(self, member: MemberId, now: int) -> None:
        """It could not be recovered from (T5.2.2)."""
        self._blamed.add(member)
        self.shun(member, now)

    def shun(self, member: MemberId, now: int) -> None:
        """It is heard and does not answer (M9)."""
        times = self._times.pop(member, 0)
        self._times[member] = min(times + 1, self.MOST_DOUBLINGS)
        if len(self._times) > self.MAX_REMEMBERED:
            self._times.pop(next(iter(self._times)))
        self._until[member] = now + self._stay * 2**times

    def forgive(self, member: MemberId) -> None:
        """It took part in a view: an earlier trouble with it counts no more."""
        self._until.pop(member, None)
        self._times.pop(member, None)
        self._blamed.discard(member)

    def spoke(self, member: MemberId) -> None:
        """It takes part after all."""
        if member not in self._blamed:
            self._until.pop(member, None)

    def expire(self, now: int) -> None:
        """Let go whose time is over; not to be called during a repair."""
        if self._until:
            self._until = {member: until for member, until in self._until.items() if now < until}
            self._blamed &= self._until.keys()
