"""What a member asks of its log: to repeat what its buffers have dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from intergroup_core.ids import MemberId
from intergroup_core.wire.run import Run


class Archive(Protocol):
    """What a member delivered and still has."""

    def held(self, source: MemberId, first: int, last: int) -> Sequence[Run]:
        """Frames of a source as they were received, in order, as many of a range as are there and as is reasonable."""
