"""A program that is a sender of a group until it is told to leave: `python peer.py GROUP NAME INTERVAL_MS INTERFACE`.

It sends a record every so often, none with an interval of 0, and prints each event as a line of JSON. Orders
come as lines of standard input: `stop` ends the sending and is answered with a row of kind `sent`; `state`
asks for where the protocol stands; `leave` leaves the group.
"""

from __future__ import annotations

import asyncio
import json
import sys

import intergroup_core as ig
from intergroup_core.api.own_member import OwnMember
from intergroup_core.cli.rows import json_line


async def main(group: str, name: str, interval_ms: float, interface: str) -> None:
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    async with ig.join(group, name=name, sender=True, interface=interface, in_process=True) as member:
        reading = asyncio.create_task(print_events(member))
        stopped = asyncio.Event()
        sending = asyncio.create_task(send_numbers(member, interval_ms, stopped))
        async for line in orders:
            if line == b"stop\n":
                stopped.set()
                say(json.dumps({"kind": "sent", "sender": None, "records": await sending}))
            elif line == b"state\n":
                await say_state(member)
            elif line == b"leave\n":
                break
        stopped.set()
        await sending
    await reading


async def print_events(member: ig.GroupMember) -> None:
    async for event in member:
        say(json_line(event))


async def send_numbers(member: ig.GroupMember, interval_ms: float, stopped: asyncio.Event) -> int:
    sent = 0
    while interval_ms and not stopped.is_set():
        await member.send(f"{member.name}:{sent}".encode())
        sent += 1
        await asyncio.sleep(interval_ms / 1_000)
    return sent


async def say_state(member: ig.GroupMember) -> None:
    seat = member._seat
    assert isinstance(seat, OwnMember)
    endpoint = seat.member.endpoint
    counters = endpoint.counters
    told = {"state": member.state, "transitions": counters.transitions, "restarts": counters.restarts}
    told |= {
        "buffered": endpoint.buffered_bytes,
        "sent_bytes": counters.bytes_sent,
        "count": (await member.members()).count,
    }
    say(json.dumps({"kind": "state", "sender": None, "members": None} | told))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]))
