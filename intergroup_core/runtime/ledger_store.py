"""What a site remembers of the statements in its groups, for the day on which nobody else is there to tell it."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from intergroup_core.runtime.home import replace_durably
from intergroup_core.wire.fields import MAX_LEDGER

_log = logging.getLogger(__name__)


class LedgerStore:
    """A file for each group."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, group: str) -> bytes:
        """What was saved last; nothing where there is none, or where it cannot be read."""
        path = self._path(group)
        try:
            with path.open("rb") as file:
                return file.read(MAX_LEDGER)
        except FileNotFoundError:
            return b""
        except OSError as error:
            _log.warning("%s cannot be read (%s): who holds the log of group %s is asked anew", path, error, group)
            return b""

    def save(self, group: str, ledger: bytes) -> bool:
        """Whether it is durable now. That nothing is known is not worth remembering."""
        if not ledger:
            return True
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_durably(self._path(group), ledger)
        except OSError as error:
            _log.warning(
                "what was stated in group %s cannot be kept in %s: %s; until it can, nobody counts on this site's log",
                group,
                self._directory,
                error.strerror,
            )
            return False
        return True

    def _path(self, group: str) -> Path:
        return self._directory / hashlib.blake2b(group.encode(), digest_size=16).hexdigest()
