"""Bare socket loops: the ceilings. Nothing of the protocol is in them, only its sizes and its socket options."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import time
from contextlib import suppress
from random import Random

from intergroup_core.benchmarks.channel import Fields, hear, say
from intergroup_core.ids import MemberId
from intergroup_core.runtime.own_frames import drop_own_frames

_BUFFER_BYTES = 64 << 20
_LARGEST = 65_536
_IDLE_SECONDS = 0.5
"""A receiver has seen the end when nothing came for so long."""
_EXCHANGE_AHEAD = 1_000_000
"""Bytes a process of an exchange may be ahead of what it received."""
_EXCHANGE_WAIT_MS = 20
_PING = struct.Struct("<QQQQ")
"""A number, and the sender where a frame has it."""


def _receiver(task: Fields) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _size(opened, 33, socket.SO_RCVBUF)
    opened.bind((task["host"], task["port"]))
    wanted = socket.inet_aton(task["host"]) + socket.inet_aton(task["interface"])
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, wanted)
    if task["offload"]:
        opened.setsockopt(socket.IPPROTO_UDP, 104, 1)
    return opened


def _sender(task: Fields) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(task["interface"]))
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, int(task.get("loop", True)))
    _size(opened, 32, socket.SO_SNDBUF)
    if task["offload"]:
        opened.setsockopt(socket.IPPROTO_UDP, 103, task["frame_bytes"])
    return opened


def _size(opened: socket.socket, forced: int, asked: int) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, forced, _BUFFER_BYTES)
    except OSError:
        opened.setsockopt(socket.SOL_SOCKET, asked, _BUFFER_BYTES)


def _burst(task: Fields) -> bytes:
    frames = 65_000 // task["frame_bytes"] if task["offload"] else 1
    return bytes(task["frame_bytes"] * frames)


def raw_send(task: Fields) -> None:
    """Send as fast as the kernel takes it."""
    opened, burst, target = _sender(task), _burst(task), (task["host"], task["port"])
    say(kind="ready")
    hear()
    sent, begin = 0, time.perf_counter()
    end = begin + task["seconds"]
    while time.perf_counter() < end:
        sent += opened.sendto(burst, target)
    say(kind="result", bytes=sent, seconds=time.perf_counter() - begin)


def raw_receive(task: Fields) -> None:
    """Receive until nothing comes any more."""
    opened = _receiver(task)
    opened.settimeout(task["seconds"] + 30.0)
    buffer, offload = bytearray(_LARGEST), task["offload"]
    say(kind="ready")
    received = 0
    begin = end = 0.0
    try:
        while True:
            length = opened.recvmsg_into([buffer], 64)[0] if offload else opened.recv_into(buffer)
            end = time.perf_counter()
            if not received:
                begin = end
                opened.settimeout(_IDLE_SECONDS)
            received += length
    except TimeoutError:
        pass
    say(kind="result", bytes=received, seconds=end - begin)


def raw_exchange(task: Fields) -> None:
    """Send and receive in turn, one's own left out by the kernel; nobody sends far beyond what it received."""
    incoming, outgoing = _receiver(task), _sender(task)
    incoming.setblocking(False)
    drop_own_frames(incoming, MemberId(task["number"]))
    burst, target = _signed(_burst(task), task), (task["host"], task["port"])
    buffer, offload, others = bytearray(_LARGEST), task["offload"], task["processes"] - 1
    wait = select.poll()
    wait.register(incoming, select.POLLIN)
    say(kind="ready")
    hear()
    received = sent = 0
    begin = time.perf_counter()
    end = begin + task["seconds"]
    ahead = _EXCHANGE_AHEAD
    while time.perf_counter() < end:
        if sent * others <= received + ahead:
            sent += outgoing.sendto(burst, target)
        elif not wait.poll(_EXCHANGE_WAIT_MS):
            ahead += _EXCHANGE_AHEAD  # what was lost must not stop everybody for ever
        with suppress(BlockingIOError):
            for _ in range(others + 1):
                received += incoming.recvmsg_into([buffer], 64)[0] if offload else incoming.recv_into(buffer)
    say(kind="result", bytes=received + sent, seconds=time.perf_counter() - begin)


def _signed(burst: bytes, task: Fields) -> bytes:
    """The burst with a sender's number where a frame has it."""
    frame = bytes(24) + int(task["number"]).to_bytes(8, "little") + bytes(task["frame_bytes"] - 32)
    return frame * (len(burst) // len(frame))


def raw_ping(task: Fields) -> None:
    """Round trips of a multicast that every idle process answers, on an event loop as a member's."""
    asyncio.run(_ping(task))


async def _ping(task: Fields) -> None:
    incoming, outgoing, target = _receiver(task), _sender(task), (task["host"], task["port"])
    incoming.setblocking(False)
    drop_own_frames(incoming, MemberId(task["number"]))
    loop = asyncio.get_running_loop()
    buffer = bytearray(_LARGEST)
    ping = _PING.pack(0, 0, 0, task["number"])
    number, missing, begin = 0, 0, 0
    trips: list[float] = []
    answered = loop.create_future()

    def readable() -> None:
        nonlocal missing
        incoming.recv_into(buffer)
        if _PING.unpack_from(buffer)[0] != number:
            return
        missing -= 1
        if not missing and not answered.done():
            trips.append((time.perf_counter_ns() - begin) / 1_000)
            answered.set_result(None)

    loop.add_reader(incoming, readable)
    say(kind="ready")
    await asyncio.to_thread(hear)
    gaps = Random(1)
    for number in range(1, task["count"] + 1):
        missing, answered = task["answerers"], loop.create_future()
        ping = _PING.pack(number, 0, 0, task["number"])
        begin = time.perf_counter_ns()
        outgoing.sendto(ping, target)
        with suppress(TimeoutError):
            await asyncio.wait_for(answered, 1.0)
        await asyncio.sleep(gaps.uniform(0.5, 1.5) * task["gap_ms"] / 1_000)
    loop.remove_reader(incoming)
    say(kind="result", microseconds=trips)


def raw_answer(task: Fields) -> None:
    """Answers pings until the benchmark ends this process."""
    asyncio.run(_answer(task))


async def _answer(task: Fields) -> None:
    incoming, outgoing, target = _receiver(task), _sender(task), (task["host"], task["port"])
    incoming.setblocking(False)
    drop_own_frames(incoming, MemberId(task["number"]))
    buffer = bytearray(_LARGEST)

    def readable() -> None:
        incoming.recv_into(buffer)
        number, _, _, sender = _PING.unpack_from(buffer)
        if sender == task["pinger"]:
            outgoing.sendto(_PING.pack(number, 0, 0, task["number"]), target)

    asyncio.get_running_loop().add_reader(incoming, readable)
    say(kind="ready")
    await asyncio.to_thread(hear)
