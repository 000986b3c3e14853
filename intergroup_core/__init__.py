"""Ordered group communication without a broker.

What one member of a group multicasts, every member receives; each receiver chooses how it is delivered.
"""

from __future__ import annotations

from intergroup_core.config import Config
from intergroup_core.errors import (
    Backpressure,
    ConfigError,
    IntergroupError,
    LocalProtocolError,
    MessageTooLarge,
    NetworkUnavailable,
)
from intergroup_core.ids import Service

__version__ = "0.1.0"

__all__ = [
    "Backpressure",
    "Config",
    "ConfigError",
    "IntergroupError",
    "LocalProtocolError",
    "MessageTooLarge",
    "NetworkUnavailable",
    "Service",
    "__version__",
]
