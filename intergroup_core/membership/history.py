"""The epochs a member has been through and the changes that began them (M0, M10, M12)."""

from __future__ import annotations

from dataclasses import replace

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.wire.membership import MembershipChange


class History:
    """Enough of the past to tell a straggler from a stranger and to help one that missed a change."""

    MAX_EPOCHS = 64
    """Epochs remembered; stragglers from before that count as strangers."""
    MAX_CHANGES = 16
    """Changes kept to be said again."""

    def __init__(self) -> None:
        self._tags: dict[int, ViewId] = {}
        self._changes: dict[ViewId, MembershipChange] = {}

    def entered(self, epoch: ViewId, change: MembershipChange | None) -> None:
        """A member's epoch from now on, and those that met in it."""
        for past in (*((cut.epoch for cut in change.cuts) if change is not None else ()), epoch):
            self._tags.pop(past.tag, None)
            self._tags[past.tag] = past
        while len(self._tags) > self.MAX_EPOCHS:
            self._tags.pop(next(iter(self._tags)))
        if change is not None:
            self._changes[epoch] = change
            if len(self._changes) > self.MAX_CHANGES:
                self._changes.pop(next(iter(self._changes)))

    def knows(self, tag: int) -> bool:
        return tag in self._tags

    def has(self, epoch: ViewId | None) -> bool:
        return epoch is not None and self._tags.get(epoch.tag) == epoch

    def of_attempt(self, attempt: int, speaker: MemberId) -> MembershipChange | None:
        """The change in which an attempt ended."""
        for change in self._changes.values():
            if change.attempt == attempt:
                return replace(change, member=speaker, again=True)
        return None

    def ending(self, epoch: ViewId, speaker: MemberId) -> MembershipChange | None:
        """The change that ended an epoch."""
        for change in self._changes.values():
            if any(cut.epoch == epoch for cut in change.cuts):
                return replace(change, member=speaker, again=True)
        return None

    def following(self, epoch: ViewId | None, tag: int, speaker: MemberId) -> MembershipChange | None:
        """The change that ended an epoch, else the one that began the view with a tag."""
        if epoch is not None and (change := self.ending(epoch, speaker)) is not None:
            return change
        for view, change in self._changes.items():
            if view.tag == tag:
                return replace(change, member=speaker, again=True)
        return None
