"""Ordered group communication without a broker.

What one member of a group multicasts, every member receives; each receiver chooses how it is delivered.

    import intergroup_core as ig

    async with ig.join("prices", sender=True) as member:
        await member.send(b"...")
        async for event in member:      # ig.Message | ig.ViewChange | ig.Gap
            ...

    with ig.open("prices") as member:   # the same without an event loop
        for event in member:
            ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from intergroup_core.config import Config
from intergroup_core.errors import (
    AckUnreached,
    Backpressure,
    ConfigError,
    IntergroupError,
    LocalProtocolError,
    MemberEnded,
    MessageTooLarge,
    NetworkUnavailable,
    NoQuorum,
    StateUnavailable,
    TransactionVoid,
)
from intergroup_core.ids import Service
from intergroup_core.version import VERSION

if TYPE_CHECKING:
    from intergroup_core.api.blocking import BlockingMember, open  # noqa: A004
    from intergroup_core.api.events import Batch, Departed, Gap, Members, Message, Peer, ViewChange
    from intergroup_core.api.joining import GroupMember, join

__version__ = VERSION

__all__ = [
    "AckUnreached",
    "Backpressure",
    "Batch",
    "BlockingMember",
    "Config",
    "ConfigError",
    "Departed",
    "Gap",
    "GroupMember",
    "IntergroupError",
    "LocalProtocolError",
    "MemberEnded",
    "Members",
    "Message",
    "MessageTooLarge",
    "NetworkUnavailable",
    "NoQuorum",
    "Peer",
    "Service",
    "StateUnavailable",
    "TransactionVoid",
    "ViewChange",
    "__version__",
    "join",
    "open",
]

_LAZY = {
    "intergroup_core.api.blocking": ("BlockingMember", "open"),
    "intergroup_core.api.events": ("Batch", "Departed", "Gap", "Members", "Message", "Peer", "ViewChange"),
    "intergroup_core.api.joining": ("GroupMember", "join"),
}
"""Imported when first used: a command that only asks for the version does not pay for the protocol."""
_HOME_OF = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
