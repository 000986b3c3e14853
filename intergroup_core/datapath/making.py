"""Makes ways of data: one for each view that stays, one for each incarnation of a member that follows its group."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from intergroup_core.config import Config
from intergroup_core.counters import Counters
from intergroup_core.datapath.engines import Beginning, Changed, HeldBack
from intergroup_core.datapath.path import DataPath
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.delivery.undurable import Undurable
from intergroup_core.effects import Outcome
from intergroup_core.ids import MemberId, Service
from intergroup_core.multicast.archive import Archive
from intergroup_core.ports import Control, Distances
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.frames import FrameMaker


class PathMaker:
    """What all ways of one member have in common."""

    def __init__(
        self,
        *,
        tag: int,
        service: Service,
        config: Config,
        clock: HybridClock,
        distances: Distances,
        rng: Random,
        counters: Counters,
        effects: Outcome,
        chosen: frozenset[MemberId] | None,
        outbox: Outbox,
        control: Control | None,
        undurable: Undurable | None,
        archive: Archive | None,
        recovered: Callable[[MemberId, int, int], None] | None,
        ledger: Ledger,
    ) -> None:
        self._tag = tag
        self._service = service
        self._config = config
        self._clock = clock
        self._distances = distances
        self._rng = rng
        self._counters = counters
        self._effects = effects
        self._chosen = chosen
        self._outbox = outbox
        self._control = control
        self._undurable = undurable
        self._archive = archive
        self._recovered = recovered
        self._ledger = ledger

    def frames(self, me: MemberId, view_tag: int) -> FrameMaker:
        """Makes the frames of an incarnation in an epoch."""
        return FrameMaker(self._tag, me, view_tag, self._config.group.frame_bytes)

    def path(
        self,
        me: MemberId,
        beginning: Beginning,
        *,
        sends: bool,
        live: bool,
        changed: Changed | None = None,
        held_back: HeldBack | None = None,
    ) -> DataPath:
        """The way of an incarnation from its beginning on."""
        return DataPath(
            me=me,
            maker=self.frames(me, beginning.view_tag),
            service=self._service,
            config=self._config,
            clock=self._clock,
            distances=self._distances,
            rng=self._rng,
            counters=self._counters,
            effects=self._effects,
            beginning=beginning,
            sends=sends,
            live=live,
            chosen=self._chosen,
            outbox=self._outbox,
            control=self._control if live else None,
            undurable=self._undurable,
            archive=self._archive,
            recovered=self._recovered,
            changed=changed,
            held_back=held_back,
            ledger=self._ledger,
        )
