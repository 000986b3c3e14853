"""Names of columns, in the default schema and in one that a user gives."""

from __future__ import annotations

from intergroup_core.log.arrow import COLUMNS

METADATA_PREFIX = "_"
IDENTITY: tuple[str, ...] = ("group_name", "sender_id", "seq", "record")
"""What tells one row from all others."""


def metadata_of(name: str) -> str | None:
    """The default column that a column of a user's schema names, or None where it is decoded from the value.

    Spark finds columns whatever their case, and so must this.
    """
    wanted = name.lower()
    if not wanted.startswith(METADATA_PREFIX) or wanted[len(METADATA_PREFIX) :] not in COLUMNS:
        return None
    return wanted[len(METADATA_PREFIX) :]
