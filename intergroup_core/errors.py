"""Everything this package raises on purpose.

    IntergroupError
    ├── ConfigError            an option has a value that is not allowed
    ├── LocalProtocolError     a call that its caller should not have made
    │   └── MessageTooLarge    a record beyond the group's maximum message
    ├── NetworkUnavailable     no such interface, no multicast, no buffer space
    ├── NoQuorum               this component has too few sites to send (quorum option)
    ├── MemberEnded            the member is out of its group although nobody asked it to leave
    ├── StateUnavailable       what a member must remember cannot be read or written
    ├── AgentUnavailable       the site's agent cannot be started or does not answer
    ├── ChannelBroken          what came from a local process or agent is not the language they speak
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


class Backpressure(IntergroupError):
    """The queue to the group is full."""


class NoQuorum(IntergroupError):
    """This component of the group has too few sites to send."""


class MemberEnded(IntergroupError):
    """The member is out of its group although nobody asked it to leave."""


class StateUnavailable(IntergroupError):
    """What a member must remember cannot be read or written."""


class AgentUnavailable(IntergroupError):
    """The site's agent cannot be started or does not answer."""


class ChannelBroken(IntergroupError):
    """What came from a local process or agent is not the language they speak."""
