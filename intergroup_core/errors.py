"""Everything this package raises on purpose.

    IntergroupError
    ├── ConfigError            an option has a value that is not allowed
    ├── LocalProtocolError     a call that its caller should not have made
    │   └── MessageTooLarge    a record beyond the group's maximum message
    ├── NetworkUnavailable     no such interface, no multicast, no buffer space
    ├── NoQuorum               this component has too few sites to send (quorum option)
    ├── TransactionVoid        a transaction cannot become visible any more; it says why
    ├── AckUnreached           fewer sites have what was sent than its sender asked for
    ├── MemberEnded            the member is out of its group although nobody asked it to leave
    ├── StateUnavailable       what a member must remember cannot be read or written
    ├── LogError               a stable log cannot do what it was asked
    │   ├── DiskFull           there is no room to append; nothing of the entry is in the log
    │   ├── LogDamaged         a file of a log does not hold what was written; names file and offset
    │   ├── LogFormat          a log of another version of the format
    │   ├── DivergedBranches   logs went different ways in a partition, and nobody said which to follow
    │   ├── DataLost           what a query was to read is gone at every site, or was never delivered
    │   ├── RangeMalformed     what should say or carry a range of a log does not
    │   └── RangeUnavailable   a log does not hold the range that was asked for
    ├── AgentUnavailable       the site's agent cannot be started or does not answer
    │   └── AgentGone          it ended while somebody talked with it
    ├── ChannelBroken          what came from a local process or agent is not the language they speak
    ├── OffsetsUnusable        offsets of a checkpoint or an option are not ones that a query can go on from
    ├── ValueMalformed         a record's value is not what the schema of a read says, or a row can be no record
    ├── DemoFailed             the demonstration could not show what it is to show
    └── Backpressure           the queue to the group is full; try again when there is room

What comes from the network never raises: it is dropped and counted by cause.
"""

from __future__ import annotations


class IntergroupError(Exception):
    """The root of the tree."""


class ConfigError(IntergroupError):
    """An option has a value that is not allowed."""


class LocalProtocolError(IntergroupError):
    """A call that its caller should not have made."""


class MessageTooLarge(LocalProtocolError):
    """A record beyond the group's maximum message."""


class NetworkUnavailable(IntergroupError):
    """The interface, multicast or a socket option is not to be had here."""


class DemoFailed(IntergroupError):
    """The demonstration could not show what it is to show."""


class Backpressure(IntergroupError):
    """The queue to the group is full."""


class NoQuorum(IntergroupError):
    """This component of the group has too few sites to send."""


class MemberEnded(IntergroupError):
    """The member is out of its group although nobody asked it to leave."""


class AckUnreached(IntergroupError):
    """Fewer sites have what was sent than its sender asked for; it is not known to be lost."""


class TransactionVoid(IntergroupError):
    """A transaction cannot become visible any more; nothing of it ever was."""


class StateUnavailable(IntergroupError):
    """What a member must remember cannot be read or written."""


class LogError(IntergroupError):
    """A stable log cannot do what it was asked."""


class DiskFull(LogError):
    """There is no room to append; nothing of the entry is in the log."""


class LogDamaged(LogError):
    """A file of a log does not hold what was written."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(
            f"{file} is damaged at offset {offset}: {what}; fetch the range from another site, or restore the file"
        )
        self.file = file
        self.offset = offset
        self._what = what

    def __reduce__(self) -> tuple[type[LogDamaged], tuple[str, int, str]]:
        return type(self), (self.file, self.offset, self._what)  # it may have to reach another process


class LogFormat(LogError):
    """A log of another version of the format."""


class DivergedBranches(LogError):
    """Logs went different ways in a partition, and nobody said which to follow."""


class DataLost(LogError):
    """What a query was to read is gone at every site, or was never delivered."""


class RangeMalformed(LogError):
    """What should be a cut, a description or a part of a range is something else."""


class RangeUnavailable(LogError):
    """A log does not hold the range that was asked for."""


class AgentUnavailable(IntergroupError):
    """The site's agent cannot be started or does not answer."""


class AgentGone(AgentUnavailable):
    """The agent ended while somebody talked with it."""


class ChannelBroken(IntergroupError):
    """What came from a local process or agent is not the language they speak."""


class OffsetsUnusable(IntergroupError):
    """Offsets are malformed, of another version, or of another query."""


class ValueMalformed(IntergroupError):
    """A record's value is not what the schema of a read says, or a row of a write can be no record."""
