"""Settings of a site's agent and of the logs it keeps; local to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from intergroup_core.bounds import Between, check
from intergroup_core.errors import ConfigError

DURABILITIES = ("memory", "os", "disk")
SLOW_READERS = ("spill", "block", "gap")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How a member that is run by an agent keeps what it delivers."""

    directory: str = ""
    """Where the log of a group lies that this site has nothing of yet: an absolute path; empty for the site's own."""
    durability: str = "os"
    """When an entry counts as kept: in the agent's `memory`, with the `os` (survives the agent), on the `disk`."""
    segment_bytes: Annotated[int, Between(1 << 16, 1 << 32)] = 64 << 20
    """A file of the log is sealed when it has so many bytes; whole files are removed."""
    retention_bytes: Annotated[int, Between(1 << 16, 1 << 50)] = 1 << 30
    """Beyond this the oldest sealed files go, unless somebody who is connected still reads them."""
    retention_s: Annotated[float, Between(1, 1e9)] = 86_400.0
    """Sealed files whose last entry is older go, with the same exception."""
    release: bool = False
    """Remove sealed files also before that, once all named subscriptions, where there are any, are done with them."""
    slow_reader: str = "spill"
    """A reader that falls behind finds all in the log (`spill`), holds up the senders (`block`), or skips (`gap`)."""
    reader_bytes: Annotated[int, Between(65_536, 1e12)] = 16_000_000
    """How far behind a reader may be before it blocks or skips."""

    holder_expiry_s: Annotated[float, Between(1, 3e8)] = 86_400.0
    """For how long a site whose log others rely on still counts for `majority` after it was heard last."""

    def __post_init__(self) -> None:
        check("log", self)
        if self.directory and not self.directory.startswith("/"):
            raise ConfigError(f"log.directory is {self.directory!r:.200}; it must be an absolute path, or empty")
        for setting, allowed in (("durability", DURABILITIES), ("slow_reader", SLOW_READERS)):
            value = getattr(self, setting)
            if value not in allowed:
                raise ConfigError(f"log.{setting} is {value!r}; it must be one of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The process that runs a site's members."""

    idle_s: Annotated[float, Between(0.1, 1e9)] = 600.0
    """An agent that nobody has used for so long leaves its groups and ends; its logs stay."""
    linger_s: Annotated[float, Between(0, 1e9)] = 0.0
    """How long a member stays in its group after the last client that used it has gone."""
    ack_timeout_s: Annotated[float, Between(0.001, 1e6)] = 30.0
    """How long what is sent may take to reach the level of acknowledgment that its sender waits for."""
    advertise: str = ""
    """Address at which other sites reach this one's logs, where that is not its interface's own."""

    def __post_init__(self) -> None:
        check("agent", self)
