"""Names that a client and its agent both check: of groups, members and services."""

from __future__ import annotations

from typing import Any

from intergroup_core.errors import ConfigError
from intergroup_core.ids import Service

MAX_NAME_BYTES = 255


def service_of(delivery: str) -> Service:
    try:
        return Service(delivery)
    except ValueError:
        raise ConfigError(f"delivery is {delivery!r:.40}; it must be uu, rso or rto") from None


def checked_name(name: Any, what: str) -> str:
    """A name that people can read and a message can carry."""
    if not isinstance(name, str) or not name or not name.isprintable() or len(name.encode()) > MAX_NAME_BYTES:
        raise ConfigError(f"{what} is {name!r:.42}; it must be 1 to {MAX_NAME_BYTES} bytes of printable text")
    return name
