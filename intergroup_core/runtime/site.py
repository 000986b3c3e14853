"""One site on an event loop: its control process, and the members it has in groups."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from random import Random, SystemRandom

from intergroup_core.config import Config, HierarchyConfig
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import LocalProtocolError
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import MemberId, Service, SiteId
from intergroup_core.multicast.archive import Archive
from intergroup_core.ports import ConstantDistance
from intergroup_core.runtime.control import ControlRunner
from intergroup_core.runtime.control_sockets import ControlSockets
from intergroup_core.runtime.home import FileStateStore, Home, chosen_home
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.interfaces import resolve_interface
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.sockets import open_sockets, within_buffer
from intergroup_core.site import Site

_log = logging.getLogger(__name__)

Network = tuple[HierarchyConfig, str, int]
"""What a control process is configured by: its hierarchy, its interface and how far it reaches."""


def network_of(config: Config) -> Network:
    return config.hierarchy, config.network.interface, config.network.ttl


class SiteRunner:
    """Opens members that share the site's clock and its control process, which starts with the first of them."""

    def __init__(self, name: str, home: str | PathLike[str] | None = None, *, clock: HybridClock | None = None) -> None:
        self._name = name
        self._home = home
        self._site = Site(clock=clock)
        self._control: ControlRunner | None = None
        self._network: Network | None = None

    def open(
        self,
        *,
        group: str,
        service: Service,
        config: Config,
        sender: bool,
        name: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_closed: Callable[[], None] | None = None,
        listen: type[Listener] = Listener,
        log: MemberLog | None = None,
        archive: Archive | None = None,
        ledger: bytes = b"",
    ) -> Member:
        """A member, not started yet, that finds its group and follows its views.

        What cannot be had of the network raises NetworkUnavailable, of the site's directory ConfigError.
        """
        me = MemberId(SystemRandom().randrange(1, 1 << 64))
        identity, store = self._identity_in(group)
        with ExitStack() as undo:
            if store is not None:
                undo.callback(store.close)
            listener, transmitter = open_sockets(group, me, config, listen)
            undo.callback(listener.close)
            undo.callback(transmitter.close)
            runner = self._control_for(config)
            start_ns = round(config.repair.distance_start_us * 1_000)
            control = self._site.control_of(group, start_ns)
            endpoint = Endpoint(
                me=me,
                name=name or self._name,
                group=group,
                service=service,
                config=within_buffer(config, listener.buffer_bytes),
                clock=self._site.clock,
                distances=ConstantDistance(start_ns) if control is None else control.distances,
                rng=Random(SystemRandom().getrandbits(64)),
                sender=sender,
                site=identity,
                record=store.load() if store is not None else None,
                control=control,
                logged=log is not None,
                archive=archive,
                ledger=ledger,
            )
            undo.pop_all()
        return Member(
            endpoint,
            listener,
            transmitter,
            app_queue_bytes=config.network.app_queue_bytes,
            on_event=on_event,
            on_closed=on_closed,
            store=store,
            control=runner,
            log=log,
        )

    def close(self) -> None:
        """The site goes: its control process says so."""
        if self._control is not None:
            self._control.close()

    def _control_for(self, config: Config) -> ControlRunner:
        """The control process of this site; all its members are in one hierarchy."""
        network = network_of(config)
        if self._control is not None:
            if network != self._network:
                raise LocalProtocolError(
                    "this site's members are in a hierarchy with other settings; give this one the same "
                    "[hierarchy], network.interface and network.ttl"
                )
            return self._control
        process = ControlProcess(
            me=SiteId(SystemRandom().randrange(1, 1 << 64)),
            name=self._name,
            config=config.hierarchy,
            system_ttl=config.network.ttl,
            rng=Random(SystemRandom().getrandbits(64)),
        )
        sockets = ControlSockets(resolve_interface(config.network.interface), config)
        self._site.control = process
        self._network = network
        self._control = ControlRunner(process, sockets)
        return self._control

    def _identity_in(self, group: str) -> tuple[str, FileStateStore | None]:
        """What quorums count, and its memory; neither without a directory, or while another process has it."""
        directory = chosen_home(self._home)
        if directory is None:
            return "", None
        at = Home(directory)
        identity = at.identity()
        store = at.state_of(group)
        if store is None:
            _log.info("another process is in group %s for the site in %s; this one counts as its own", group, directory)
            return "", None
        return identity, store
