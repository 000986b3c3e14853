from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from intergroup_core.sim.inbox import MAX_SPANS, Inbox
from intergroup_core.sim.loss import BurstyLoss, UniformLoss
from intergroup_core.sim.network import Conditions, Dropped, Network, Packet
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.topology import line, scattered, star

SEGMENT = 16
BURST = b"".join(bytes([index]) * SEGMENT for index in range(1, 5)) + b"\x05" * 8


class Ear:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.heard: list[tuple[int, Packet]] = []

    def arrive(self, packet: Packet) -> None:
        self.heard.append((self._scheduler.now, packet))

    def datagrams(self) -> list[bytes]:
        return [
            packet.data[start : start + packet.segment]
            for _, packet in self.heard
            for start in range(0, len(packet.data), packet.segment)
        ]


def a_network(**conditions: Any) -> tuple[Network, Scheduler, list[Ear]]:
    scheduler = Scheduler()
    network = Network(scheduler, Random(1), star([0, 100, 200]), Conditions(**conditions))
    ears = [Ear(scheduler) for _ in range(3)]
    for ear in ears:
        network.attach(ear)
    return network, scheduler, ears


def test_a_burst_reaches_everybody_else_after_their_delay_as_one_buffer() -> None:
    network, scheduler, ears = a_network()
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert ears[0].heard == []
    assert ears[1].heard == [(100, Packet(BURST, SEGMENT))]
    assert ears[2].heard == [(200, Packet(BURST, SEGMENT))]


def test_without_coalescing_every_datagram_comes_alone_and_in_order() -> None:
    network, scheduler, ears = a_network(coalesce=0.0)
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert [packet.data[0] for _, packet in ears[1].heard] == [1, 2, 3, 4, 5]


def test_what_survives_a_loss_is_coalesced_over_the_hole() -> None:
    network, scheduler, ears = a_network(loss=0.5)
    lost: list[Dropped] = []
    network.on_drop = lost.append
    for _ in range(20):
        network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    heard = len(ears[1].datagrams()) + len(ears[2].datagrams())
    assert heard + len(lost) == 2 * 20 * 5
    assert network.dropped == len(lost)
    assert any(len(packet.data) > SEGMENT and packet.data != BURST for _, packet in ears[1].heard)
    assert ears[1].datagrams() != ears[2].datagrams()


def test_a_loss_on_the_senders_link_is_everybodys() -> None:
    network, scheduler, ears = a_network(shared_loss=0.5)
    lost: list[Dropped] = []
    network.on_drop = lost.append
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert ears[1].datagrams() == ears[2].datagrams()
    assert {drop.receiver for drop in lost} == {None}
    assert len(lost) + len(ears[1].datagrams()) == 5


def test_links_keep_their_order_under_jitter() -> None:
    network, scheduler, ears = a_network(jitter_ns=500)
    for index in range(50):
        scheduler.at(index, network.multicast, 0, bytes([index]) * 8, 8)
    scheduler.run_until(10_000)
    assert [packet.data[0] for _, packet in ears[1].heard] == list(range(50))
    assert len({at - index for index, (at, _) in enumerate(ears[1].heard)}) > 1


def test_duplicates_come_again_and_reordered_ones_late() -> None:
    network, scheduler, ears = a_network(duplicate=0.3, reorder=0.3, reorder_ns=1_000)
    for index in range(100):
        scheduler.at(index, network.multicast, 0, bytes([index]) * 8, 8)
    scheduler.run_until(10_000)
    order = [packet.data[0] for _, packet in ears[1].heard]
    assert set(order) == set(range(100))
    assert len(order) > 100
    assert order != sorted(order)
    assert network.duplicated
    assert network.reordered


def test_damage_is_done_to_a_copy() -> None:
    network, scheduler, ears = a_network(corrupt=0.5)
    for _ in range(20):
        network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    whole = {BURST[start : start + SEGMENT] for start in range(0, len(BURST), SEGMENT)}
    damaged = [datagram for datagram in ears[1].datagrams() if datagram not in whole]
    assert damaged
    assert network.corrupted >= len(damaged)
    assert any(datagram in whole for datagram in ears[2].datagrams())


def test_a_cut_link_is_one_way_and_can_be_healed() -> None:
    network, scheduler, ears = a_network()
    network.cut({(0, 1)})
    network.multicast(0, BURST, SEGMENT)
    network.multicast(1, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert ears[1].heard == []
    assert len(ears[0].heard) == 1
    network.heal({(0, 1)})
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(2_000)
    assert len(ears[1].heard) == 1


def test_a_chance_beyond_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss is 1\.5"):
        Conditions(loss=1.5)


@pytest.mark.parametrize("mean_burst", [1.0, 8.0])
def test_losses_have_the_rate_and_length_asked_for(mean_burst: float) -> None:
    rng = Random(3)
    model = BurstyLoss(rng, 0.2, mean_burst) if mean_burst > 1 else UniformLoss(rng, 0.2)
    fates = [model.loses() for _ in range(50_000)]
    assert 0.18 < sum(fates) / len(fates) < 0.22
    bursts = sum(lost and not before for before, lost in itertools.pairwise(fates))
    assert 0.8 < sum(fates) / bursts / max(mean_burst, 1.25) < 1.2


def test_an_inbox_lays_packets_end_to_end_on_whole_words() -> None:
    inbox = Inbox(1_000)
    inbox.put(Packet(b"a" * 32, 16))
    inbox.put(Packet(b"b" * 13, 13))
    inbox.put(Packet(b"c" * 8, 8))
    arrival = inbox.take()
    assert arrival.spans == [(0, 32, 16), (32, 13, 13), (48, 8, 8)]
    assert arrival.data.tobytes() == b"a" * 32 + b"b" * 13 + bytes(3) + b"c" * 8
    assert arrival.data.flags.writeable
    assert not inbox


def test_a_full_inbox_drops_what_comes() -> None:
    inbox = Inbox(20)
    assert inbox.put(Packet(bytes(16), 16))
    assert not inbox.put(Packet(bytes(8), 8))
    assert inbox.overflowed == 1
    inbox.take()
    assert inbox.put(Packet(bytes(8), 8))


def test_a_wake_up_reads_a_bounded_number_of_packets() -> None:
    inbox = Inbox(1 << 20)
    for _ in range(MAX_SPANS + 3):
        inbox.put(Packet(bytes(8), 8))
    assert len(inbox.take().spans) == MAX_SPANS
    assert len(inbox.take().spans) == 3


def test_delays_follow_the_shape() -> None:
    assert star([0, 1, 2]) == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert line([0, 5, 7], hop_ns=1) == [[0, 6, 8], [6, 0, 3], [8, 3, 0]]
    delays = scattered(20, Random(1), nearest_ns=10, furthest_ns=100)
    assert all(10 <= delay <= 100 for row in delays for delay in row)
    assert all(delays[i][j] == delays[j][i] for i in range(20) for j in range(20))


def test_nobody_hears_where_a_port_was_detached_until_another_takes_its_place() -> None:
    network, scheduler, ears = a_network()
    network.detach(1)
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert ears[1].heard == []
    again = Ear(scheduler)
    assert network.attach(again, 1) == 1
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(2_000)
    assert ears[1].heard == []
    assert again.datagrams() == ears[2].datagrams()[:5]


def test_a_port_may_take_an_index_beyond_those_that_are_there() -> None:
    network, scheduler, ears = a_network()
    late = Ear(scheduler)
    assert network.attach(late, 5) == 5
    network.detach(5)
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert len(ears[1].datagrams()) == 5


def test_a_lossy_link_loses_one_way_until_it_is_mended() -> None:
    network, scheduler, ears = a_network()
    network.lossy({(0, 1)}, 1.0)
    network.multicast(0, BURST, SEGMENT)
    network.multicast(1, BURST, SEGMENT)
    scheduler.run_until(1_000)
    assert ears[1].heard == []
    assert len(ears[0].datagrams()) == 5
    network.lossy({(0, 1)}, None)
    network.multicast(0, BURST, SEGMENT)
    scheduler.run_until(2_000)
    assert len(ears[1].datagrams()) == 5
