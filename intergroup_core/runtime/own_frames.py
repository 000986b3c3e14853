"""A classic BPF program by which the kernel drops a member's own multicasts before they cost a copy."""

from __future__ import annotations

import ctypes
import logging
import socket
import struct

from intergroup_core.ids import MemberId

_log = logging.getLogger(__name__)

_ATTACH_FILTER = getattr(socket, "SO_ATTACH_FILTER", 26)
_INSTRUCTION = struct.Struct("HBBI")
_LOAD_LENGTH, _LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x80, 0x20, 0x15, 0x35, 0x06

_UDP_HEADER = 8
_SENDER = _UDP_HEADER + 24
"""Where a frame's sender id lies: a socket filter sees the UDP header first."""


def own_frames_program(me: MemberId) -> list[tuple[int, int, int, int]]:
    """Instructions (code, jump if true, jump if false, operand) that refuse datagrams whose first frame is mine.

    A datagram too short to have a sender passes, so that it is counted with the other malformed ones.
    """
    low, high = struct.unpack(">II", me.to_bytes(8, "little"))
    return [
        (_LOAD_LENGTH, 0, 0, 0),
        (_JUMP_AT_LEAST, 0, 5, _SENDER + 8),
        (_LOAD_WORD, 0, 0, _SENDER),
        (_JUMP_EQUAL, 0, 3, low),
        (_LOAD_WORD, 0, 0, _SENDER + 4),
        (_JUMP_EQUAL, 0, 1, high),
        (_RETURN, 0, 0, 0),
        (_RETURN, 0, 0, 0xFFFFFFFF),
    ]


def drop_own_frames(receiver: socket.socket, me: MemberId) -> bool:
    """Attach the program; without it the core drops the same frames itself, only later."""
    code = b"".join(_INSTRUCTION.pack(*instruction) for instruction in own_frames_program(me))
    room = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(code) // _INSTRUCTION.size, ctypes.addressof(room))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
    except OSError as error:
        _log.debug("no socket filter here: %s", error)
        return False
    return True
