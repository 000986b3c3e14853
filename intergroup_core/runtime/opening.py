"""Opens a member of a group: interface, sockets, endpoint, event loop."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from random import Random, SystemRandom

from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import MemberId, Service, SiteId, View
from intergroup_core.ports import ConstantDistance
from intergroup_core.runtime.address import group_address
from intergroup_core.runtime.control import ControlRunner
from intergroup_core.runtime.control_sockets import ControlSockets
from intergroup_core.runtime.home import FileStateStore, Home, chosen_home
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.interfaces import resolve_interface
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.memory import keep_freed_memory
from intergroup_core.runtime.transmitter import Transmitter
from intergroup_core.site import Site

_log = logging.getLogger(__name__)

BUFFER_PER_ROOM = 2
"""Socket buffer kept for each byte of room reported: the kernel charges a datagram more than its length."""
LEAST_ROOM_BYTES = 10_000
"""Some room is always reported: a sender that may send nothing would never learn more."""


def open_member(
    *,
    group: str,
    name: str,
    me: MemberId,
    view: View,
    counted: frozenset[MemberId],
    service: Service,
    config: Config,
    on_event: Callable[[Event], None] | None = None,
    listen: type[Listener] = Listener,
) -> Member:
    """A member, not started yet, of a group whose view is given and stays.

    What cannot be had of the network raises NetworkUnavailable.
    """
    listener, transmitter = _open_sockets(group, me, config, listen)
    endpoint = Endpoint(
        me=me,
        name=name,
        group=group,
        view=view,
        counted=counted,
        service=service,
        config=within_buffer(config, listener.buffer_bytes),
        clock=HybridClock(),
        distances=ConstantDistance(round(config.repair.distance_start_us * 1_000)),
        rng=Random(SystemRandom().getrandbits(64)),
    )
    return Member(endpoint, listener, transmitter, app_queue_bytes=config.network.app_queue_bytes, on_event=on_event)


def open_live_member(
    *,
    group: str,
    name: str,
    service: Service,
    config: Config,
    sender: bool,
    home: str | PathLike[str] | None = None,
    on_event: Callable[[Event], None] | None = None,
    listen: type[Listener] = Listener,
) -> Member:
    """A member, not started yet, that finds its group and follows its views.

    What cannot be had of the network raises NetworkUnavailable, of the site's directory ConfigError.
    """
    me = MemberId(SystemRandom().randrange(1, 1 << 64))
    site, store = _site_of(group, home)
    with ExitStack() as undo:
        if store is not None:
            undo.callback(store.close)
        listener, transmitter = _open_sockets(group, me, config, listen)
        undo.callback(listener.close)
        undo.callback(transmitter.close)
        sockets = ControlSockets(resolve_interface(config.network.interface), config)
        undo.callback(sockets.close)
        here = Site(_control_process(name, config))
        start_ns = round(config.repair.distance_start_us * 1_000)
        control = here.control_of(group, start_ns)
        endpoint = Endpoint(
            me=me,
            name=name,
            group=group,
            service=service,
            config=within_buffer(config, listener.buffer_bytes),
            clock=here.clock,
            distances=ConstantDistance(start_ns) if control is None else control.distances,
            rng=Random(SystemRandom().getrandbits(64)),
            sender=sender,
            site=site,
            record=store.load() if store is not None else None,
            control=control,
        )
        undo.pop_all()
    return Member(
        endpoint,
        listener,
        transmitter,
        app_queue_bytes=config.network.app_queue_bytes,
        on_event=on_event,
        store=store,
        control=None if here.control is None else ControlRunner(here.control, sockets),
    )


def _control_process(name: str, config: Config) -> ControlProcess:
    return ControlProcess(
        me=SiteId(SystemRandom().randrange(1, 1 << 64)),
        name=name,
        config=config.hierarchy,
        system_ttl=config.network.ttl,
        rng=Random(SystemRandom().getrandbits(64)),
    )


def _site_of(group: str, home: str | PathLike[str] | None) -> tuple[str, FileStateStore | None]:
    """The identity that quorums count and its memory; neither without a directory, or while another process has it."""
    directory = chosen_home(home)
    if directory is None:
        return "", None
    at = Home(directory)
    identity = at.identity()
    store = at.state_of(group)
    if store is None:
        _log.info("another process is in group %s for the site in %s; this one counts as its own", group, directory)
        return "", None
    return identity, store


def _open_sockets(group: str, me: MemberId, config: Config, listen: type[Listener]) -> tuple[Listener, Transmitter]:
    keep_freed_memory()
    interface = resolve_interface(config.network.interface)
    address = group_address(group, config.network)
    listener = listen(address, interface, config.network, me)
    try:
        return listener, Transmitter(address, interface, config.network)
    except BaseException:
        listener.close()
        raise


def within_buffer(config: Config, granted: int) -> Config:
    """The room a member reports is never more than its socket holds while the member is busy (D10)."""
    room = min(config.report.room_bytes, max(LEAST_ROOM_BYTES, granted // BUFFER_PER_ROOM))
    return dataclasses.replace(config, report=dataclasses.replace(config.report, room_bytes=room))
