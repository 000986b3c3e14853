"""Other sites that keep logs, and this one among them: found by asking all, served over TCP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import SystemRandom

from intergroup_core.agent.entrance import Entrance
from intergroup_core.agent.range_server import RangeServer, may_listen
from intergroup_core.agent.witnesses import Witnesses
from intergroup_core.client.fetching import Keeper
from intergroup_core.config import Config
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.ids import Service, SiteId, Timestamp, group_tag
from intergroup_core.runtime.interfaces import resolve_interface
from intergroup_core.runtime.keeper_socket import KeeperSocket
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.wire.keeping import HoldingQuery, KeeperAnswer, KeeperCommit, KeeperQuery

_log = logging.getLogger(__name__)

ASKS = 3
ASK_SECONDS = 0.1
"""Between two times of asking: a question or an answer may be lost."""


class Keepers:
    """One socket and one listener for each interface that members of this site use."""

    def __init__(self, name: str, key: int, store: StreamStore, entrance: Entrance, advertise: str = "") -> None:
        self._name = name
        self._store = store
        self._advertise = advertise
        self._me = SiteId(SystemRandom().randrange(1, 1 << 64))
        self.witnesses = Witnesses(self._me, key)
        self._entrance = entrance
        self._groups: dict[int, str] = {}
        self._sockets: dict[str, KeeperSocket] = {}
        self._servers: dict[str, RangeServer] = {}
        self._ports: dict[str, int] = {}
        self._answers: dict[int, dict[SiteId, Keeper]] = {}
        self.committed: Callable[[KeeperCommit, str], None] = lambda commit, group: None
        """Called with what another site says of a subscription to a group that is kept here."""
        self.refresh()

    def refresh(self) -> None:
        """Streams came or went."""
        self._groups = {group_tag(group): group for group, _ in self._store.streams()}

    async def use(self, config: Config) -> str:
        """Be there on the interface of a member; its address."""
        interface = resolve_interface(config.network.interface)
        address = interface.address
        if address in self._sockets:
            return address
        self._sockets[address] = KeeperSocket(
            interface,
            config.network.ttl,
            self._me,
            asked=lambda query: self._asked(query, address),
            told=self._told,
            committed=self._committed,
            held=self.witnesses.asked,
            holds=self.witnesses.told,
        )
        if not may_listen(address):
            _log.warning("%s is a public address: logs are not served there without security", address)
            return address
        server = RangeServer(self._store, self._entrance.token_of)
        try:
            self._ports[address] = await server.listen(address, self._entrance.port_of(address))
        except OSError as error:
            raise NetworkUnavailable(f"logs cannot be served at {address}: {error.strerror}") from error
        self._servers[address] = server
        self._entrance.listens(address, self._ports[address])
        return address

    async def find(self, group: str, config: Config) -> list[Keeper]:
        """Sites that answer that they have something of a group's log."""
        address = await self.use(config)
        serial = SystemRandom().randrange(1 << 62)
        answers = self._answers[serial] = {}
        try:
            for _ in range(ASKS):
                self._sockets[address].ask(serial, group_tag(group))
                await asyncio.sleep(ASK_SECONDS)
        finally:
            del self._answers[serial]
        return sorted(answers.values(), key=lambda keeper: (keeper.host, keeper.port))

    def own(self, group: str) -> list[Keeper]:
        """This site, where it serves its logs."""
        token = self._entrance.token_of(group)
        return [Keeper(self._name, self._advertise or host, port, token) for host, port in self._ports.items()]

    def spread(self, group: str, service: Service, name: str, cut: bytes, stamp: Timestamp) -> None:
        """Say to all how far a subscription has come."""
        commit = KeeperCommit(
            site=self._me, group=group_tag(group), service=service.value, name=name, cut=cut, stamp=stamp
        )
        for opened in self._sockets.values():
            opened.commit(commit)

    def ask_held(self, query: HoldingQuery) -> None:
        """Ask what other sites have of a group, wherever members of this one are."""
        for opened in self._sockets.values():
            opened.ask_held(query)

    async def close(self) -> None:
        for opened in self._sockets.values():
            opened.close()
        for server in self._servers.values():
            await server.close()

    @property
    def ports(self) -> dict[str, int]:
        """Where logs are served, by address."""
        return dict(self._ports)

    def _asked(self, query: KeeperQuery, address: str) -> KeeperAnswer | None:
        group = self._groups.get(query.group)
        port = self._ports.get(address)
        if group is None or port is None:
            return None
        return KeeperAnswer(
            site=self._me,
            serial=query.serial,
            group=query.group,
            name=self._name,
            host=self._advertise or address,
            port=port,
            token=self._entrance.token_of(group),
        )

    def _committed(self, commit: KeeperCommit) -> None:
        group = self._groups.get(commit.group)
        if group is not None:
            self.committed(commit, group)

    def _told(self, answer: KeeperAnswer) -> None:
        answers = self._answers.get(answer.serial)
        if answers is not None and answer.site != self._me:
            answers[answer.site] = Keeper(answer.name, answer.host, answer.port, answer.token)
