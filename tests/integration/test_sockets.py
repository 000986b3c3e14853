"""Listener and transmitter against the kernel, on loopback."""

from __future__ import annotations

import logging
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from intergroup_core.config import NetworkConfig
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.runtime.address import GroupAddress, hashed_address
from intergroup_core.runtime.arena import ARENA_BYTES
from intergroup_core.runtime.interfaces import Interface, resolve_interface
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.transmitter import Transmitter
from intergroup_core.wire.parse import Arrival
from tests.integration.groups import a_group_name

ME, OTHER = MemberId(0xFEDC_BA98_7654_3210), MemberId(0x0123_4567_89AB_CDEF)
FRAME = 1_400


class Sockets:
    """A listener of mine and a transmitter, on a group of their own."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.address = hashed_address(a_group_name())
        self.interface = resolve_interface("lo")

    def listener(self, *, offload: bool = True, me: MemberId = ME, buffer_bytes: int = 8_000_000) -> Listener:
        network = NetworkConfig(offload=offload, socket_buffer_bytes=buffer_bytes)
        opened = Listener(self.address, self.interface, network, me)
        self._stack.callback(opened.close)
        return opened

    def transmitter(self, *, offload: bool = True) -> Transmitter:
        opened = Transmitter(self.address, self.interface, NetworkConfig(offload=offload))
        self._stack.callback(opened.close)
        return opened


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with ExitStack() as stack:
        yield Sockets(stack)


def a_datagram(number: int, size: int = FRAME, sender: MemberId = OTHER) -> bytes:
    return (bytes([number % 256]) * 24 + sender.to_bytes(8, "little")).ljust(size, bytes([number % 256]))


def datagrams(count: int, size: int = FRAME, sender: MemberId = OTHER) -> list[bytes]:
    return [a_datagram(number, size, sender) for number in range(count)]


def received(listener: Listener, wanted: int) -> list[bytes]:
    """The next datagrams, in order."""
    found: list[bytes] = []
    while len(found) < wanted:
        assert select.select([listener], [], [], 10.0)[0], "nothing came"
        arrival = listener.receive()
        if arrival is not None:
            found += split(arrival)
    return found


def split(arrival: Arrival) -> list[bytes]:
    return [
        arrival.data[at : min(at + segment, offset + length)].tobytes()
        for offset, length, segment in arrival.spans
        for at in range(offset, offset + length, segment)
    ]


@pytest.mark.parametrize("listening", [True, False])
@pytest.mark.parametrize("sending", [True, False])
def test_datagrams_arrive_whole_and_in_order_whichever_side_offloads(
    sockets: Sockets, sending: bool, listening: bool
) -> None:
    listener, transmitter = sockets.listener(offload=listening), sockets.transmitter(offload=sending)
    sent = datagrams(150)
    data = memoryview(b"".join(sent)[:-200])
    assert transmitter.send(data, FRAME) == len(data)
    assert received(listener, 150) == [*sent[:-1], sent[-1][:-200]]


def test_a_burst_is_received_as_one_buffer(sockets: Sockets) -> None:
    listener, transmitter = sockets.listener(), sockets.transmitter()
    if not (transmitter.bursts and listener.coalesced):
        pytest.skip("this kernel has no UDP segmentation offload")
    transmitter.send(memoryview(b"".join(datagrams(46))), FRAME)
    assert select.select([listener], [], [], 10.0)[0]
    arrival = listener.receive()
    assert arrival is not None
    assert arrival.spans == [(0, 46 * FRAME, FRAME)]


@pytest.mark.parametrize("offload", [True, False])
def test_equal_datagrams_lie_end_to_end_and_every_one_at_a_multiple_of_eight(sockets: Sockets, offload: bool) -> None:
    listener, transmitter = sockets.listener(offload=offload), sockets.transmitter(offload=False)
    for size in (104, 104, 99, 104):
        transmitter.send(a_datagram(1, size), size)
    assert select.select([listener], [], [], 10.0)[0]
    arrival = listener.receive()
    assert arrival is not None
    assert arrival.spans == [(0, 104, 104), (104, 104, 104), (208, 99, 99), (312, 104, 104)]
    assert listener.drained


def test_what_was_handed_over_is_never_overwritten(sockets: Sockets) -> None:
    listener, transmitter = sockets.listener(), sockets.transmitter()
    kept: list[tuple[Arrival, list[bytes]]] = []
    rounds = 3 * ARENA_BYTES // (40 * FRAME)
    for _ in range(rounds):
        transmitter.send(memoryview(b"".join(datagrams(40))), FRAME)
        assert select.select([listener], [], [], 10.0)[0]
        arrival = listener.receive()
        assert arrival is not None
        kept.append((arrival, split(arrival)))
    assert all(split(arrival) == content for arrival, content in kept)


@pytest.mark.parametrize("offload", [True, False])
def test_the_kernel_drops_what_this_member_sent_itself(sockets: Sockets, offload: bool) -> None:
    mine, others = sockets.listener(offload=offload), sockets.listener(offload=offload, me=OTHER)
    if not mine.filters_own:
        pytest.skip("this kernel takes no socket filter")
    transmitter = sockets.transmitter(offload=offload)
    transmitter.send(memoryview(b"".join(datagrams(5, sender=ME))), FRAME)
    transmitter.send(memoryview(b"".join(datagrams(3, sender=OTHER))), FRAME)
    assert received(mine, 3) == datagrams(3, sender=OTHER)
    assert received(others, 5) == datagrams(5, sender=ME)
    assert mine.receive() is None
    assert others.receive() is None


def test_a_group_on_another_port_is_not_heard(sockets: Sockets) -> None:
    listener, transmitter = sockets.listener(), sockets.transmitter()
    elsewhere = Transmitter(
        GroupAddress(sockets.address.host, sockets.address.port ^ 1), sockets.interface, NetworkConfig()
    )
    elsewhere.send(a_datagram(1), FRAME)
    elsewhere.close()
    transmitter.send(a_datagram(2), FRAME)
    assert received(listener, 1) == [a_datagram(2)]
    assert listener.receive() is None


def test_a_smaller_buffer_than_asked_for_is_said_with_the_setting_to_raise(
    sockets: Sockets, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_for_less(where: socket.socket, forced: int, asked: int, size: int) -> None:
        where.setsockopt(socket.SOL_SOCKET, asked, 65_536)

    monkeypatch.setattr("intergroup_core.runtime.listener.set_buffer", asked_for_less)
    with caplog.at_level(logging.WARNING):
        listener = sockets.listener(buffer_bytes=1_000_000_000)
    assert listener.buffer_bytes == 65_536
    assert "sysctl -w net.core.rmem_max=1000000000" in caplog.text


def test_a_port_another_program_holds_is_an_error_that_names_the_option(sockets: Sockets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("", sockets.address.port))
        with pytest.raises(NetworkUnavailable, match=r"cannot listen on .*network\.port"):
            sockets.listener()


def test_an_interface_that_cannot_join_is_an_error_that_says_what_to_do(sockets: Sockets) -> None:
    sockets.interface = Interface(
        name="gone", index=999_999, address="192.0.2.77", mtu=1_500, up=True, loopback=False, multicast=True
    )
    with pytest.raises(NetworkUnavailable, match=r"cannot join .*gone.*network\.interface"):
        sockets.listener()
    with pytest.raises(NetworkUnavailable, match=r"cannot send to .*gone.*network\.interface"):
        sockets.transmitter()


def test_memory_that_nobody_looks_at_is_used_again_from_its_beginning(sockets: Sockets) -> None:
    listener, transmitter = sockets.listener(), sockets.transmitter()
    places = set()
    for _ in range(5):
        transmitter.send(a_datagram(1), FRAME)
        assert select.select([listener], [], [], 10.0)[0]
        arrival = listener.receive()
        assert arrival is not None
        places.add(arrival.data.ctypes.data)
        del arrival
    assert len(places) == 1
