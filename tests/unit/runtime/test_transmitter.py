"""What a transmitter does with the answers of the kernel, over a socket that answers as told."""

from __future__ import annotations

import errno
import logging
import socket

import pytest

from intergroup_core.config import NetworkConfig
from intergroup_core.runtime import socket_options
from intergroup_core.runtime.address import GroupAddress
from intergroup_core.runtime.interfaces import Interface
from intergroup_core.runtime.transmitter import MAX_BURST_SEGMENTS, Transmitter

INTERFACE = Interface(name="e0", index=1, address="127.0.0.1", mtu=1_500, up=True, loopback=False, multicast=True)
FRAME = 1_400
SEGMENT_OPTION = 103


class ScriptedSocket:
    """Takes everything, save the sends for which an error is given."""

    def __init__(self, *errors: int, segments: bool = True) -> None:
        self._errors = list(errors)
        self._segments = segments
        self.cut_by = 0
        self.sent: list[tuple[bytes, int]] = []

    def setsockopt(self, level: int, option: int, value: object) -> None:
        if level == socket.IPPROTO_UDP and option == SEGMENT_OPTION:
            if not self._segments:
                raise OSError(errno.ENOPROTOOPT, "Protocol not available")
            assert isinstance(value, int)
            self.cut_by = value

    def connect(self, address: object) -> None:
        """Anywhere."""

    def send(self, data: memoryview | bytes) -> int:
        if self._errors and (error := self._errors.pop(0)):
            raise BlockingIOError(error, "would block") if error == errno.EAGAIN else OSError(error, "refused")
        self.sent.append((bytes(data), self.cut_by))
        return len(data)

    def close(self) -> None:
        """Nothing to close."""

    @property
    def datagrams(self) -> list[bytes]:
        """What goes on the wire: a send larger than the segment is cut."""
        return [
            data[at : at + (cut or len(data))]
            for data, cut in self.sent
            for at in range(0, len(data), cut or len(data))
        ]


@pytest.fixture(autouse=True)
def _warnings_not_given_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_options, "_warned", set())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedSocket]:
    """The sockets the next transmitters get."""
    waiting: list[ScriptedSocket] = []
    monkeypatch.setattr(socket, "socket", lambda *_: waiting.pop(0))
    return waiting


def a_transmitter(wire: ScriptedSocket, opened: list[ScriptedSocket], *, offload: bool = True) -> Transmitter:
    opened.append(wire)
    return Transmitter(GroupAddress("239.192.0.1", 40_000), INTERFACE, NetworkConfig(offload=offload))


def frames(count: int, size: int = FRAME) -> memoryview:
    return memoryview(b"".join(bytes([number % 256]) * size for number in range(count)))


def test_a_burst_is_one_call(opened: list[ScriptedSocket]) -> None:
    wire = ScriptedSocket()
    assert a_transmitter(wire, opened).send(frames(46), FRAME) == 46 * FRAME
    assert wire.sent == [(bytes(frames(46)), FRAME)]


@pytest.mark.parametrize(("count", "size"), [(700, FRAME), (MAX_BURST_SEGMENTS + 1, 128), (200, 256)])
def test_more_than_a_burst_is_cut_into_bursts_the_kernel_takes(
    opened: list[ScriptedSocket], count: int, size: int
) -> None:
    wire = ScriptedSocket()
    assert a_transmitter(wire, opened).send(frames(count, size), size) == count * size
    assert all(len(data) <= 65_507 and len(data) <= size * MAX_BURST_SEGMENTS for data, _ in wire.sent)
    assert wire.datagrams == [bytes([number % 256]) * size for number in range(count)]


@pytest.mark.parametrize(("burst", "calls"), [(0, [46, 4]), (3 * FRAME, [3] * 16 + [2]), (99 * FRAME, [46, 4])])
def test_a_call_of_the_kernel_gets_no_more_than_the_burst_asked_for(
    opened: list[ScriptedSocket], burst: int, calls: list[int]
) -> None:
    wire = ScriptedSocket()
    assert a_transmitter(wire, opened).send(frames(50), FRAME, burst) == 50 * FRAME
    assert [len(data) // FRAME for data, _ in wire.sent] == calls


@pytest.mark.parametrize("offload", [True, False])
def test_the_last_datagram_of_a_burst_may_be_shorter(opened: list[ScriptedSocket], offload: bool) -> None:
    wire = ScriptedSocket()
    data = frames(3)[: 2 * FRAME + 104]
    assert a_transmitter(wire, opened, offload=offload).send(data, FRAME) == len(data)
    assert [len(datagram) for datagram in wire.datagrams] == [FRAME, FRAME, 104]


def test_a_single_datagram_larger_than_the_segment_in_force_is_not_cut(opened: list[ScriptedSocket]) -> None:
    wire = ScriptedSocket()
    transmitter = a_transmitter(wire, opened)
    transmitter.send(frames(2, 200), 200)
    transmitter.send(frames(1, 1_000), 1_000)
    transmitter.send(frames(1, 96), 96)
    assert [len(datagram) for datagram in wire.datagrams] == [200, 200, 1_000, 96]


def test_without_offload_datagrams_go_one_by_one(opened: list[ScriptedSocket]) -> None:
    wire = ScriptedSocket()
    assert a_transmitter(wire, opened, offload=False).send(frames(3), FRAME) == 3 * FRAME
    assert [data for data, _ in wire.sent] == [bytes([number]) * FRAME for number in range(3)]


def test_a_kernel_without_segmentation_is_found_out_at_the_start_and_said_once(
    opened: list[ScriptedSocket], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        wire = ScriptedSocket(segments=False)
        transmitter = a_transmitter(wire, opened)
        assert not transmitter.bursts
        assert transmitter.send(frames(2), FRAME) == 2 * FRAME
        assert len(wire.sent) == 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("error", [errno.EIO, errno.EINVAL])
def test_a_device_that_refuses_a_burst_gets_its_datagrams_one_by_one(opened: list[ScriptedSocket], error: int) -> None:
    wire = ScriptedSocket(0, error)
    transmitter = a_transmitter(wire, opened)
    transmitter.send(frames(4), FRAME)
    assert transmitter.send(frames(4), FRAME) == 4 * FRAME
    assert not transmitter.bursts
    assert len(wire.datagrams) == 8
    assert len(wire.sent) == 5
    assert transmitter.lost == 0


def test_frames_larger_than_the_interface_carries_go_one_by_one_and_the_setting_is_named(
    opened: list[ScriptedSocket], caplog: pytest.LogCaptureFixture
) -> None:
    wire = ScriptedSocket()
    assert a_transmitter(wire, opened).send(frames(2, 1_496), 1_496) == 2 * 1_496
    assert [len(data) for data, _ in wire.sent] == [1_496, 1_496]
    assert "group.frame_bytes to at most 1472" in caplog.text


@pytest.mark.parametrize(
    ("offload", "before", "taken"), [(True, 0, 0), (True, 1, 46 * FRAME), (False, 0, 0), (False, 5, 5 * FRAME)]
)
def test_a_congested_network_takes_whole_datagrams_up_to_where_it_refuses(
    opened: list[ScriptedSocket], offload: bool, before: int, taken: int
) -> None:
    wire = ScriptedSocket(*[0] * before, errno.EAGAIN)
    assert a_transmitter(wire, opened, offload=offload).send(frames(100), FRAME) == taken
    assert len(b"".join(wire.datagrams)) == taken


@pytest.mark.parametrize("offload", [True, False])
def test_what_the_network_refuses_for_another_reason_counts_as_lost(
    opened: list[ScriptedSocket], caplog: pytest.LogCaptureFixture, offload: bool
) -> None:
    wire = ScriptedSocket(errno.ENETDOWN, errno.ENETDOWN)
    transmitter = a_transmitter(wire, opened, offload=offload)
    assert transmitter.send(frames(200), FRAME) == 200 * FRAME
    assert transmitter.lost == 2
    assert 0 < len(wire.datagrams) < 200
    assert len([record for record in caplog.records if "refused" in record.message]) == 1


def test_a_network_that_is_down_for_long_does_not_stop_a_large_message(opened: list[ScriptedSocket]) -> None:
    wire = ScriptedSocket(*[errno.ENETDOWN] * 6_000)
    transmitter = a_transmitter(wire, opened, offload=False)
    assert transmitter.send(frames(5_000, 128), 128) == 5_000 * 128
    assert transmitter.lost == 5_000
