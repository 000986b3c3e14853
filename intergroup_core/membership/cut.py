"""Where an epoch ends, worked out from what its survivors have (M4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.wire.membership import RecoveryInfo


@dataclass(frozen=True, slots=True)
class Ending:
    """What every survivor of an epoch must have before its view may end."""

    bound: Timestamp
    """Messages of failed senders above it are discarded by all."""
    targets: dict[MemberId, int]
    """Seqs up to which somebody has each source."""
    failed: frozenset[MemberId]
    promises: dict[MemberId, int]
    """The best promise known of each of them."""
    changed: Timestamp
    """The last ordered membership message that took effect at any of them."""


def ending_of(survivors: Iterable[RecoveryInfo]) -> Ending:
    """The end of the epoch that these come from.

    Whatever a survivor delivered needed a promise of every sender at or above its timestamp, so the least of the best
    promises known lies at or above all of it: nothing delivered is cut.
    """
    infos = list(survivors)
    targets: dict[MemberId, int] = {}
    promises: dict[MemberId, int] = {}
    for info in infos:
        for source, contiguous, promise in info.failed:
            targets[source] = max(targets.get(source, 0), contiguous)
            promises[source] = max(promises.get(source, 0), promise)
    failed = frozenset(targets)
    targets.update((info.member, info.last_seq) for info in infos)
    bound = Timestamp(min(promises.values(), default=MAX_TIMESTAMP))
    return Ending(bound, targets, failed, promises, Timestamp(max(info.changed for info in infos)))
