"""How much one micro-batch may have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a batch may have; soft by what must not be parted."""

    rows: int | None = None
    nbytes: int | None = None

    @property
    def any(self) -> bool:
        return self.rows is not None or self.nbytes is not None

    def exceeded_by(self, rows: int, nbytes: int) -> bool:
        return (self.rows is not None and rows > self.rows) or (self.nbytes is not None and nbytes > self.nbytes)

    def shared_by(self, groups: int) -> Limits:
        return Limits(
            rows=None if self.rows is None else max(1, self.rows // groups),
            nbytes=None if self.nbytes is None else max(1, self.nbytes // groups),
        )
