"""The interface that the three delivery services share."""

from __future__ import annotations

from typing import Protocol

from intergroup_core.ids import MemberId
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class DeliveryService(Protocol):
    """Frames and promises in, whole messages out, in the order the service promises."""

    def arrived(self, run: Run) -> None:
        """Frames as the network brought them."""

    def ordered(self, run: Run) -> None:
        """The next frames of a source, without gap or duplicate."""

    def promised(self, source: MemberId, timestamp: int) -> None:
        """What the source sends later exceeds this timestamp (D2)."""

    def take(self) -> list[Chunk]:
        """What may be delivered now."""

    def acknowledged(self, own: int) -> int:
        """Everything at or below this timestamp is delivered here; `own` is this member's clock."""
