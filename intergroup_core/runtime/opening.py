"""Opens a member of a group: interface, sockets, endpoint, event loop."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from random import Random, SystemRandom

from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import MemberId, Service, View
from intergroup_core.ports import ConstantDistance
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.site import SiteRunner
from intergroup_core.runtime.sockets import open_sockets, within_buffer


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
    on_closed: Callable[[], None] | None = None,
    listen: type[Listener] = Listener,
    log: MemberLog | None = None,
) -> Member:
    """A member, not started yet, of a group whose view is given and stays.

    What cannot be had of the network raises NetworkUnavailable.
    """
    listener, transmitter = open_sockets(group, me, config, listen)
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
        logged=log is not None,
    )
    return Member(
        endpoint,
        listener,
        transmitter,
        app_queue_bytes=config.network.app_queue_bytes,
        on_event=on_event,
        on_closed=on_closed,
        log=log,
    )


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
    """A member, not started yet, that finds its group and follows its views, at a site that goes with it.

    What cannot be had of the network raises NetworkUnavailable, of the site's directory ConfigError.
    """
    site = SiteRunner(name, home)
    try:
        return site.open(
            group=group,
            service=service,
            config=config,
            sender=sender,
            on_event=on_event,
            on_closed=site.close,
            listen=listen,
        )
    except BaseException:
        site.close()
        raise
