"""Named subscriptions: what clients say that they are done with, kept here and spread to all who hold the stream."""

from __future__ import annotations

import logging

import msgpack

from intergroup_core.agent.keepers import Keepers
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.errors import ConfigError, IntergroupError
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut, EntryCut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.subscription_store import MAX_NAME_BYTES, Subscription, SubscriptionStore
from intergroup_core.wire.keeping import KeeperCommit

_log = logging.getLogger(__name__)

MAX_SPREAD_BYTES = 1_200
"""A cut that does not fit a datagram with the rest, of thousands of senders, stays here."""


class Subscriptions:
    """The site's own word is durable before it is answered; that of others comes as datagrams, again and again."""

    def __init__(self, store: SubscriptionStore, keepers: Keepers, clock: HybridClock) -> None:
        self._store = store
        self._keepers = keepers
        self._clock = clock
        self._own: dict[tuple[str, Service, str], Subscription] = {}
        """What this agent was told, said to others from time to time."""
        keepers.committed = self._heard

    def commit(self, group: str, service: Service, name: str, cut: Cut | None) -> bool:
        """A subscription has come so far, or ends; whether it was known or is now."""
        if not name or len(name.encode()) > MAX_NAME_BYTES or not name.isprintable():
            raise ConfigError(
                f"a subscription's name is {name!r:.42}; it must be 1 to {MAX_NAME_BYTES} bytes of printable text"
            )
        said = Subscription(group=group, service=service, name=name, cut=cut, stamp=self._clock.stamp(1, now()))
        kept = self._store.put(said)
        self._own[group, service, name] = said
        self._say(said)
        return kept

    def committed(self, group: str, service: Service, name: str) -> Cut | None:
        found = self._store.get(group, service, name)
        return found.cut if found is not None else None

    def of(self, group: str, service: Service) -> list[Subscription]:
        return self._store.of(group, service)

    def say_again(self) -> None:
        """For sites that were not there, or did not hear it."""
        for said in self._own.values():
            self._say(said)

    def _say(self, said: Subscription) -> None:
        if isinstance(said.cut, EntryCut):
            return  # means nothing elsewhere
        cut = msgpack.packb(listed_cut(said.cut)) if said.cut is not None else b""
        if len(cut) <= MAX_SPREAD_BYTES:
            self._keepers.spread(said.group, said.service, said.name, cut, said.stamp)

    def _heard(self, commit: KeeperCommit, group: str) -> None:
        try:
            cut = cut_of_list(msgpack.unpackb(commit.cut)) if commit.cut else None
            service = Service(commit.service)
            self._clock.observe(commit.stamp)
            own = self._own.get((group, service, commit.name))
            if own is not None and own.stamp < commit.stamp:
                del self._own[group, service, commit.name]  # who said the last word repeats it
            self._store.put(Subscription(group=group, service=service, name=commit.name, cut=cut, stamp=commit.stamp))
        except (ValueError, TypeError, msgpack.UnpackException, RecursionError, IntergroupError) as error:
            _log.info("what another site says of a subscription to %s is not taken: %s", group, error)
