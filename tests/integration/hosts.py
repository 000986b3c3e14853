"""Hosts of a testbed that can be cut off from each other."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from intergroup_core.benchmarks.testbed import SUBNET, hosts_on_a_bridge, inside

_NFT = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
WITHOUT_FILTER = None if _NFT else "only a packet filter parts hosts by sides or by group: `apt-get install nftables`"
_TABLE = """
table ip partition {{
  chain in {{
    type filter hook input priority 0; policy accept;
    {rules}
  }}
}}
"""


class Hosts:
    """Names of hosts, numbered from 1 in their addresses."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def within(self, number: int) -> tuple[str, ...]:
        """The prefix of a command on a host, counted from 0."""
        return inside(self.names[number])

    def part(self, *sides: Sequence[int], only_group: Mapping[str, int] | None = None) -> None:
        """Hosts on different sides hear nothing of each other; or nothing of a group, whose agents have these addresses
        and ports."""
        if _NFT is None:
            if only_group is not None or any(len(side) > 1 for side in sides[1:]):
                pytest.skip(str(WITHOUT_FILTER))
            for number in (number for side in sides[1:] for number in side):
                self._set_port(number, "down")
            return
        for side in sides:
            others = [number for other in sides if other is not side for number in other]
            table = _TABLE.format(rules="\n    ".join(_drops(others, only_group)))
            for number in side:
                _run(*self.within(number), _NFT, "-f", "-", given=table)

    def join(self) -> None:
        """Everybody hears everybody again."""
        for number in range(len(self.names)):
            if _NFT is None:
                self._set_port(number, "up")
            else:
                _run(*self.within(number), _NFT, "delete", "table", "ip", "partition")

    def _set_port(self, number: int, state: str) -> None:
        # Without a packet filter a port of the bridge is taken down; then every host of a side is on its own.
        host = self.names[number]
        switch = host.removesuffix(f"h{number + 1}") + "s"
        _run(*inside(switch), inside(switch)[0], "link", "set", f"p{number + 1}", state)


def _drops(hosts: Sequence[int], only_group: Mapping[str, int] | None) -> list[str]:
    source = f"ip saddr {{ {', '.join(f'{SUBNET}.{number + 1}' for number in hosts)} }}"
    if only_group is None:
        return [f"{source} drop"]
    # By port and address: what is a group's port at one host may be anything else at another.
    rules = [f"{source} meta l4proto udp drop"]
    for address, port in only_group.items():
        rules.append(f"{source} ip saddr {address} tcp sport {port} drop")
        rules.append(f"{source} ip daddr {address} tcp dport {port} drop")
    return rules


def _run(*command: str, given: str = "") -> None:
    subprocess.run(command, input=given, text=True, check=True, capture_output=True)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    with hosts_on_a_bridge(count) as names:
        yield Hosts(names)
