"""The filter program, run by a small interpreter of the instructions it uses."""

from __future__ import annotations

import pytest

from intergroup_core.ids import MemberId
from intergroup_core.runtime.own_frames import own_frames_program

ME = MemberId(0x1122_3344_5566_7788)
OTHERS = [MemberId(0x1122_3344_5566_7789), MemberId(0x1122_3345_5566_7788), MemberId(1), MemberId(2**64 - 1)]


def a_datagram(sender: MemberId, size: int = 200) -> bytes:
    udp_header = bytes(8)
    return (udp_header + bytes(24) + sender.to_bytes(8, "little")).ljust(8 + size, b"\0")


def passes(program: list[tuple[int, int, int, int]], packet: bytes) -> bool:
    accumulator = at = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        match code:
            case 0x80:
                accumulator = len(packet)
            case 0x20:
                if operand + 4 > len(packet):
                    return False
                accumulator = int.from_bytes(packet[operand : operand + 4], "big")
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x06:
                return operand != 0
            case _:
                raise AssertionError(f"instruction {code:#x} is not one the filter uses")


def test_own_frames_are_refused() -> None:
    assert not passes(own_frames_program(ME), a_datagram(ME))


@pytest.mark.parametrize("other", OTHERS)
def test_frames_of_others_pass(other: MemberId) -> None:
    assert passes(own_frames_program(ME), a_datagram(other))


@pytest.mark.parametrize("size", [0, 1, 24, 31])
def test_what_is_too_short_to_have_a_sender_passes_to_be_counted(size: int) -> None:
    assert passes(own_frames_program(ME), a_datagram(ME)[: 8 + size])


def test_the_shortest_datagram_that_has_a_sender_is_judged() -> None:
    assert not passes(own_frames_program(ME), a_datagram(ME, size=32))
