"""What may be asked of a member: where it is, what it has, who else is there."""

from __future__ import annotations

from intergroup_core.datapath.path import DataPath
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.ids import NO_TIMESTAMP, Instant, MemberId, Timestamp, View, format_member
from intergroup_core.membership.process import Membership
from intergroup_core.membership.states import State
from intergroup_core.ports import Control, Told


class Observed:
    """Answers without changing anything; what it tells of is the endpoint's."""

    _fixed: View | None
    _path: DataPath | None
    _membership: Membership | None
    _control: Control | None
    _outbox: Outbox

    @property
    def view(self) -> View | None:
        """The view installed last."""
        return self._fixed if self._membership is None else self._membership.view

    @property
    def state(self) -> str:
        """Of the membership protocol."""
        if self._membership is not None:
            return self._membership.state.value
        return "fixed" if self._fixed is not None else State.RECEIVER.value

    @property
    def permission(self) -> tuple[str, int] | None:
        """The view in which this sender may send, and its number among those that had a quorum (M11)."""
        membership = self._membership
        if membership is None or membership.state is not State.SENDER or not membership.standing.quorum.may_send:
            return None
        view = membership.view
        return None if view is None else (str(view.id), membership.standing.quorum.number)

    @property
    def last_seq(self) -> int:
        """Of the last frame that this incarnation sent."""
        return self._path.last_seq if self._path is not None else 0

    @property
    def receivers(self) -> dict[MemberId, str]:
        """Receivers that this member knows to be there, by name where it heard one."""
        if self._path is None or self._membership is None:
            return {}
        names = self._path.reports.names
        return {member: names.get(member, format_member(member)) for member in self._path.reports.receivers}

    def told(self, now: Instant) -> Told | None:
        """What the hierarchy says of the group: how many are waited for, what they all have, who is the slowest."""
        if self._control is None or self._path is None or self._membership is None:
            return None
        return self._control.told(self._path.epochs, now.mono)

    def roll(self, now: Instant) -> tuple[str, ...]:
        """Names of sites in the group that the hierarchy has heard of."""
        return self._control.roll(now.mono) if self._control is not None else ()

    @property
    def acknowledged(self) -> Timestamp:
        """Everything at or below is delivered here."""
        return self._path.acknowledged if self._path is not None else NO_TIMESTAMP

    @property
    def stable(self) -> Timestamp:
        """Everything at or below is delivered at every counted member."""
        return self._path.stable if self._path is not None else NO_TIMESTAMP

    @property
    def is_sender(self) -> bool:
        if self._membership is not None:
            return self._membership.standing.is_sender()
        return self._path is not None and self._path.sender is not None

    @property
    def send_room(self) -> int:
        """Bytes the send queue still takes."""
        return self._outbox.free if self._fixed is None or self.is_sender else 0

    @property
    def unsent_bytes(self) -> int:
        """Bytes taken from the application and not yet sent."""
        return self._outbox.bytes

    @property
    def unsent_records(self) -> int:
        """Records taken from the application that no message has yet."""
        return self._outbox.records

    @property
    def buffered_bytes(self) -> int:
        """Bytes kept because not every counted member has them."""
        return self._path.buffered_bytes if self._path is not None else 0

    @property
    def most_buffered_bytes(self) -> int:
        return self._path.most_buffered_bytes if self._path is not None else 0

    @property
    def slowest(self) -> MemberId | None:
        """The member whose room ends this sender's window first."""
        return self._path.reports.slowest() if self._path is not None else None
