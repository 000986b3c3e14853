"""A simulated multicast network: every burst reaches every other member late, in part, twice, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple, Protocol

from intergroup_core.sim.adversary import Rule
from intergroup_core.sim.loss import BurstyLoss, UniformLoss
from intergroup_core.sim.scheduler import Scheduler

Link = tuple[int, int]
"""Indices of a sender and a receiver: links are one-way."""


class Packet(NamedTuple):
    """Datagrams of one sender that arrive together, as the kernel would coalesce them."""

    data: bytes
    segment: int


class Port(Protocol):
    """Where a member takes what arrives."""

    def arrive(self, packet: Packet) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How bad the network is; chances are per datagram and receiver."""

    loss: float = 0.0
    mean_burst: float = 1.0
    """Datagrams lost in a row on average; above 1 losses are bursty."""
    shared_loss: float = 0.0
    """Chance of a loss on the sender's own link: nobody gets the datagram."""
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_ns: int = 20_000_000
    """The most that a reordered or duplicated datagram is late."""
    corrupt: float = 0.0
    jitter_ns: int = 0
    coalesce: float = 1.0
    """Chance that the datagrams of a burst reach a receiver as one buffer."""

    def __post_init__(self) -> None:
        for name in ("loss", "shared_loss", "duplicate", "reorder", "corrupt", "coalesce"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 1")

    def quiet(self) -> Conditions:
        """The same network on a good day."""
        return replace(self, loss=0.0, shared_loss=0.0, duplicate=0.0, reorder=0.0, corrupt=0.0)


class Dropped(NamedTuple):
    """A datagram that a receiver did not get; None stands for all of them."""

    sender: int
    receiver: int | None
    data: memoryview


class Network:
    """Carries bursts between ports; its own multicast never comes back to a sender."""

    def __init__(
        self, scheduler: Scheduler, rng: Random, delays: Sequence[Sequence[int]], conditions: Conditions
    ) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._delays = delays
        self._ports: list[Port | None] = []
        self._cut: set[Link] = set()
        self._last_arrival: dict[Link, int] = {}
        self._loss: dict[Link, UniformLoss | BurstyLoss] = {}
        self._special: dict[Link, UniformLoss] = {}
        self._rules: list[Rule] = []
        self.on_drop: Callable[[Dropped], None] = lambda dropped: None
        self.datagrams = 0
        self.dropped = 0
        self.duplicated = 0
        self.reordered = 0
        self.corrupted = 0
        self.conditions = conditions

    @property
    def conditions(self) -> Conditions:
        return self._conditions

    @conditions.setter
    def conditions(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._loss.clear()
        self._disturbed = conditions.duplicate + conditions.reorder + conditions.corrupt

    def attach(self, port: Port, index: int | None = None) -> int:
        """Give a port the next index, or one of before, whose port it replaces."""
        if index is None:
            self._ports.append(port)
            return len(self._ports) - 1
        self._ports += [None] * (index + 1 - len(self._ports))
        self._ports[index] = port
        return index

    def detach(self, index: int) -> None:
        """Nobody listens there any more; what is under way is lost."""
        self._ports[index] = None

    def delay(self, sender: int, receiver: int) -> int:
        return self._delays[sender][receiver]

    def cut(self, links: set[Link]) -> None:
        """From now on nothing crosses these links; what is under way still arrives."""
        self._cut |= links

    def lossy(self, links: set[Link], loss: float | None) -> None:
        """These links lose that part of their datagrams, whatever the conditions; None ends it."""
        for link in sorted(links):
            if loss is None:
                self._special.pop(link, None)
            else:
                self._special[link] = UniformLoss(self._rng, loss)

    def heal(self, links: set[Link]) -> None:
        self._cut -= links

    def oppose(self, rule: Rule) -> None:
        """From now on what a rule names is lost or late."""
        self._rules.append(rule)

    def relent(self, rule: Rule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)

    def heal_all(self) -> None:
        self._cut.clear()
        self._special.clear()
        self._rules.clear()

    def multicast(self, sender: int, data: bytes | memoryview, segment: int) -> None:
        """Carry one burst: datagrams of `segment` bytes, the last perhaps shorter."""
        burst = bytes(data)
        size = len(burst)
        datagrams = (
            [burst] if size <= segment else [burst[start : start + segment] for start in range(0, size, segment)]
        )
        self.datagrams += len(datagrams)
        shared = self._conditions.shared_loss
        if shared:
            kept = [self._rng.random() >= shared for _ in datagrams]
            for datagram, keep in zip(datagrams, kept, strict=True):
                if not keep:
                    self.dropped += len(self._ports) - 1
                    self.on_drop(Dropped(sender, None, memoryview(datagram)))
            datagrams = [datagram for datagram, keep in zip(datagrams, kept, strict=True) if keep]
        whole = burst if len(datagrams) * segment >= size else None
        for receiver, port in enumerate(self._ports):
            if receiver != sender and port is not None:
                self._carry((sender, receiver), port, datagrams, segment, whole)

    def passage(self, sender: int, receiver: int) -> int | None:
        """When a datagram of something other than the group's own traffic arrives; None where it does not."""
        link = (sender, receiver)
        if link in self._cut or self._ports[receiver] is None:
            return None
        if (self._conditions.loss or link in self._special) and self._loss_on(link).loses():
            return None
        jitter = int(self._rng.random() * self._conditions.jitter_ns) if self._conditions.jitter_ns else 0
        return self._scheduler.now + self._delays[sender][receiver] + jitter

    def _carry(self, link: Link, port: Port, datagrams: list[bytes], segment: int, whole: bytes | None) -> None:
        conditions = self._conditions
        if link in self._cut:
            for datagram in datagrams:
                self._drop(link, datagram)
            return
        arrived = datagrams
        if self._rules:
            arrived = datagrams = self._opposed(link, datagrams)
            whole = None
        if conditions.loss or link in self._special:
            model = self._loss_on(link)
            arrived = []
            for datagram in datagrams:
                if model.loses():
                    self._drop(link, datagram)
                else:
                    arrived.append(datagram)
        due = self._scheduler.now + self._delays[link[0]][link[1]]
        if conditions.jitter_ns:
            due += int(self._rng.random() * conditions.jitter_ns)
        # A link keeps its order unless the network reorders on purpose.
        before = self._last_arrival.get(link, 0)
        if before > due:
            due = before
        if self._disturbed:
            arrived = self._disturb(link, arrived, segment, due)
        if not arrived:
            return
        self._last_arrival[link] = due
        if len(arrived) == 1:
            (datagram,) = arrived
            self._scheduler.at(due, port.arrive, Packet(datagram, len(datagram)))
        elif conditions.coalesce < 1 and self._rng.random() >= conditions.coalesce:
            for datagram in arrived:
                self._scheduler.at(due, port.arrive, Packet(datagram, len(datagram)))
        elif whole is not None and len(arrived) == len(datagrams):
            self._scheduler.at(due, port.arrive, Packet(whole, segment))
        else:
            # Kernels coalesce what arrives in a row whether or not something was lost in between.
            self._scheduler.at(due, port.arrive, Packet(b"".join(arrived), len(arrived[0])))

    def _opposed(self, link: Link, datagrams: list[bytes]) -> list[bytes]:
        """What no rule strikes."""
        spared: list[bytes] = []
        for datagram in datagrams:
            rule = next((rule for rule in self._rules if rule.strikes(link, datagram, self._rng)), None)
            if rule is None:
                spared.append(datagram)
            elif rule.late_ns:
                late = self._scheduler.now + self._delays[link[0]][link[1]] + rule.late_ns
                self._scheduler.at(late, self._port(link).arrive, Packet(datagram, len(datagram)))
            else:
                self._drop(link, datagram)
        return spared

    def _disturb(self, link: Link, datagrams: list[bytes], segment: int, due: int) -> list[bytes]:
        """Take what is duplicated, reordered or corrupted on its own way; the rest goes on in order."""
        conditions, rng = self._conditions, self._rng
        in_order: list[bytes] = []
        for datagram in datagrams:
            chance = rng.random()
            if chance >= self._disturbed:
                in_order.append(datagram)
                continue
            late = due + rng.randrange(1, conditions.reorder_ns + 1)
            port = self._port(link)
            if chance < conditions.duplicate:
                self.duplicated += 1
                in_order.append(datagram)
                self._scheduler.at(late, port.arrive, Packet(datagram, len(datagram)))
            elif chance < conditions.duplicate + conditions.reorder:
                self.reordered += 1
                self._scheduler.at(late, port.arrive, Packet(datagram, len(datagram)))
            else:
                self.corrupted += 1
                self.on_drop(Dropped(link[0], link[1], memoryview(datagram)))
                damaged = self._damage(datagram)
                # Of one size still, it travels inside the coalesced buffer like any other.
                if len(damaged) == segment:
                    in_order.append(damaged)
                else:
                    self._scheduler.at(due, port.arrive, Packet(damaged, len(damaged)))
        return in_order

    def _damage(self, datagram: bytes) -> bytes:
        rng = self._rng
        if rng.random() < 0.2:
            return datagram[: rng.randrange(1, len(datagram))]
        damaged = bytearray(datagram)
        flips = rng.choice((1, 1, 2, 8))
        for _ in range(flips):
            at = rng.randrange(len(damaged))
            # The checksum is known to let some pairs of flips in the upper bits of words through, so they stay below.
            damaged[at if flips == 1 else at - max(0, at % 8 - 5)] ^= 1 << rng.randrange(8)
        return bytes(damaged)

    def _port(self, link: Link) -> Port:
        port = self._ports[link[1]]
        assert port is not None, "nothing is carried to where nobody listens"
        return port

    def _drop(self, link: Link, datagram: bytes) -> None:
        self.dropped += 1
        self.on_drop(Dropped(link[0], link[1], memoryview(datagram)))

    def _loss_on(self, link: Link) -> UniformLoss | BurstyLoss:
        model = self._special.get(link) or self._loss.get(link)
        if model is None:
            conditions = self._conditions
            if conditions.mean_burst > 1:
                model = BurstyLoss(self._rng, conditions.loss, conditions.mean_burst)
            else:
                model = UniformLoss(self._rng, conditions.loss)
            self._loss[link] = model
        return model
