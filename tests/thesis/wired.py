"""Endpoints wired together in memory: every datagram arrives after the same time, unless a test cuts the wire."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeVar

from intergroup_core.effects import Deliver, Effect, Install, Multicast, Order
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import Instant, MemberId, Service, ViewId
from intergroup_core.wire.membership import MembershipChange
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.parse import Parsed
from tests.builders import FAST, T0, a_config, an_arrival, millis, parsed
from tests.membership_builders import a_live_endpoint

LATENCY = millis(1)
MOST_TICKS = 2_000
"""At one instant; more mean that a member spins."""

Kind = TypeVar("Kind")
Filter = Callable[[MemberId, MemberId, Parsed], bool]


class Node:
    """One member, the effects it had, and what its wire lets through."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.id = endpoint.me
        """As it was at first: by it the test knows the member whatever its incarnation."""
        self.effects: list[Effect] = []
        self.dead = False
        self.paused_until = 0

    @property
    def state(self) -> str:
        return self.endpoint.state

    @property
    def members(self) -> tuple[MemberId, ...]:
        return self.endpoint.view.members if self.endpoint.view is not None else ()

    def had(self, kind: type[Kind]) -> list[Kind]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def installs(self) -> list[Install]:
        return self.had(Install)

    @property
    def records(self) -> list[bytes]:
        """What was delivered to the application."""
        return [record for each in self.had(Deliver) for m in each.chunk.messages() for record in m.records()]

    @property
    def stream(self) -> list[str]:
        """Records and views in the order in which the application, or the order inside, had them."""
        found: list[str] = []
        for effect in self.effects:
            if isinstance(effect, (Deliver, Order)):
                found += [r.decode() for m in effect.chunk.messages() for r in m.records()]
            elif isinstance(effect, Install):
                found.append("/".join(f"{member:x}" for member in effect.view.members))
        return found

    @property
    def transitions(self) -> list[str]:
        return list(self.endpoint.counters.transitions)


class Wired:
    """A group without a network: `run` lets time pass."""

    def __init__(self, **sections: Any) -> None:
        self.config = a_config(**{"send": FAST} | sections)
        self.now = T0
        self.nodes: list[Node] = []
        self.said: list[tuple[MemberId, Parsed]] = []
        """Everything that was multicast, by whom."""
        self.lets: Filter = lambda source, target, message: True
        self._wire: list[tuple[int, int, Node, bytes]] = []
        self._count = 0

    # Members

    def join(self, me: int, *, sender: bool = False, service: Service = Service.RTO, **settings: Any) -> Node:
        endpoint = a_live_endpoint(
            MemberId(me), sender=sender, service=service, config=self.config, seed=me, **settings
        )
        node = Node(endpoint)
        self.nodes.append(node)
        self._carry_out(node, endpoint.start(self.now))
        return node

    def senders(self, *members: int, **settings: Any) -> list[Node]:
        """Senders of one view."""
        nodes = []
        for member in members:
            nodes.append(self.join(member, sender=True, **settings))
            self.run_until(lambda: nodes[-1].state == "sender")
        self.run_until(lambda: all(len(node.members) == len(members) for node in nodes))
        return nodes

    def send(self, node: Node, *records: str) -> None:
        self._carry_out(node, node.endpoint.send([record.encode() for record in records], self.now))

    def leave(self, node: Node) -> None:
        self._carry_out(node, node.endpoint.leave(self.now))

    def crash(self, node: Node) -> None:
        node.dead = True

    def pause(self, node: Node, ms: float) -> None:
        """The process stands still; its socket does not."""
        node.paused_until = self.now.mono + millis(ms)

    def part(self, *sides: list[Node]) -> None:
        """Only members of the same side hear each other."""
        side = {node.endpoint.me: number for number, nodes in enumerate(sides) for node in nodes}
        self.lets = lambda source, target, message: side.get(source) == side.get(target)

    def heal(self) -> None:
        self.lets = lambda source, target, message: True

    def hears(self, node: Node, *frames: bytes) -> list[Effect]:
        """A member hears what no other said."""
        effects = node.endpoint.receive(an_arrival(*frames), self.now)
        self._carry_out(node, effects)
        return effects

    def epoch(self, node: Node) -> ViewId:
        """The epoch that a member's frames belong to: that of the last change."""
        tag = self.heard(KeepAlive, node.endpoint.me)[-1].view_tag
        return next(change.view for change in self.heard(MembershipChange) if change.view.tag == tag)

    # Time

    def run(self, ms: float) -> None:
        end = self.now.mono + millis(ms)
        ticks = 0
        while (due := self._next()) is not None and due[0] <= end:
            at, node = due
            ticks = ticks + 1 if at <= self.now.mono else 0
            assert ticks < MOST_TICKS, f"{node} spins in {node.state}" if node else "the wire does"
            self._pass_to(max(at, self.now.mono))
            if node is not None:
                self._carry_out(node, node.endpoint.tick(self.now))
            else:
                self._arrive()
        self._pass_to(end)

    def run_until(self, condition: Callable[[], bool], most_ms: float = 10_000) -> None:
        start = self.now.mono
        while not condition():
            assert self.now.mono - start < millis(most_ms), f"never: {[node.state for node in self.nodes]}"
            self.run(5)

    def _pass_to(self, mono: int) -> None:
        self.now = Instant(mono, T0.wall + mono - T0.mono)

    def _next(self) -> tuple[int, Node | None] | None:
        found: list[tuple[int, int, Node | None]] = []
        if self._wire:
            found.append((self._wire[0][0], -1, None))
        for index, node in enumerate(self.nodes):
            deadline = node.endpoint.next_deadline() if not node.dead and node.state != "left" else None
            if deadline is not None:
                found.append((max(deadline, node.paused_until), index, node))
        if not found:
            return None
        at, _, chosen = min(found, key=lambda entry: entry[:2])
        return at, chosen

    def _arrive(self) -> None:
        _, _, node, datagram = heapq.heappop(self._wire)
        if node.dead or node.state == "left":
            return
        if node.paused_until > self.now.mono:
            self._put(node.paused_until, node, datagram)
            return
        self._carry_out(node, node.endpoint.receive(an_arrival(datagram), self.now))

    def _put(self, at: int, node: Node, datagram: bytes) -> None:
        self._count += 1
        heapq.heappush(self._wire, (at, self._count, node, datagram))

    def _carry_out(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            node.effects.append(effect)
            if isinstance(effect, Multicast):
                data = bytes(effect.data)
                for at in range(0, len(data), effect.segment):
                    self._multicast(node, data[at : at + effect.segment])

    def _multicast(self, node: Node, datagram: bytes) -> None:
        (message,) = parsed(datagram)
        source = node.endpoint.me
        self.said.append((source, message))
        for other in self.nodes:
            if other is not node and self.lets(source, other.endpoint.me, message):
                self._put(self.now.mono + LATENCY, other, datagram)

    # What was seen

    def heard(self, kind: type[Kind], source: MemberId | None = None) -> list[Kind]:
        """Everything of a kind that was multicast."""
        return [m for who, m in self.said if isinstance(m, kind) and (source is None or who == source)]
