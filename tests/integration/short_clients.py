"""Many short-lived clients of one site's agent: each sends a record and ends, half of them by being killed.

python -m tests.integration.short_clients --clients 1000
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import intergroup_core as ig
from tests.integration.agents import logs_of, opened, records_in, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.sites import sites

ROOT = Path(__file__).parents[2]
AT_ONCE = 8
MOST_LIFE_SECONDS = 0.08
"""Of a client that is killed; one that is faster is killed before it could say goodbye."""
REST = 10
"""Equal looks at an agent that make it one at rest."""
NAMED_SHARE = 0.02
"""Of clients that are members of their own, which have to join and leave."""


@dataclass
class Storm:
    """Forks clients out of a process that has everything imported already."""

    group: str
    home: Path
    rng: Random
    acknowledged: list[int] = field(default_factory=list)
    killed: int = 0
    _running: dict[int, int] = field(default_factory=dict)

    def run(self, first: int, stop: int) -> None:
        _ = ig.open  # which is imported when it is first asked for
        gc.collect()
        gc.freeze()  # or each client's first collection would copy everything
        for number in range(first, stop):
            while len(self._running) >= AT_ONCE:
                self._collect()
            self._fork(number)
        while self._running:
            self._collect()

    def _fork(self, number: int) -> None:
        life = self.rng.uniform(0, MOST_LIFE_SECONDS) if number % 2 else None
        name = f"client-{number}" if self.rng.random() < NAMED_SHARE else None
        pid = os.fork()
        if pid:
            self._running[pid] = number
            return
        try:
            if life is not None:
                signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
                signal.setitimer(signal.ITIMER_REAL, life + 1e-6)
            with opened(self.group, self.home, sender=True, name=name, reads=number % 3 == 0) as client:
                client.send(b"%d" % number, ack="delivered")
                if life is not None:
                    os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        except BaseException as error:
            print(f"client {number}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)

    def _collect(self) -> None:
        pid, status = os.wait()
        number = self._running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            self.acknowledged.append(number)
        elif code == -signal.SIGKILL and number % 2:
            self.killed += 1
        else:
            raise AssertionError(f"client {number} ended with {code}")


def storm(group: str, home: Path, first: int, stop: int, seed: int) -> dict[str, object]:
    """Run clients in a process of their own, without threads: only such a one may fork."""
    program = (
        "import json, sys; from pathlib import Path; from random import Random; "
        "from tests.integration.short_clients import Storm; "
        "made = Storm(sys.argv[1], Path(sys.argv[2]), Random(int(sys.argv[5]))); "
        "made.run(int(sys.argv[3]), int(sys.argv[4])); print(json.dumps([made.acknowledged, made.killed]))"
    )
    command = [sys.executable, "-c", program, group, str(home), str(first), str(stop), str(seed)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    acknowledged, killed = json.loads(done.stdout)
    return {"acknowledged": acknowledged, "killed": killed}


def held_by(pid: int) -> Counter[str]:
    """The threads of a process and what it has open; sockets have numbers that tell nothing, and are all alike."""
    found = Counter(threads=len(os.listdir(f"/proc/{pid}/task")))
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found[os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0]] += 1
    return found


def held_at_rest(pid: int) -> Counter[str]:
    """Once it does not change any more: the agent may still be closing what a client closed."""
    last = [held_by(pid)]

    def at_rest() -> bool:
        last.append(held_by(pid))
        return len(last) > REST and all(each == last[-1] for each in last[-REST:])

    until(at_rest)
    return last[-1]


def children_left(group: str) -> list[str]:
    """Processes that still have the group in their command."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if group.encode() in command:
                found.append(entry.name)
    return found


def run_clients(home: Path, count: int, seed: int) -> dict[str, object]:
    """A storm of so many, after one that warms the agent up; what is left behind is an AssertionError."""
    group = a_group_name()
    warm_up = max(20, count // 20)
    with opened(group, home, sender=True, reads=False):
        storm(group, home, -warm_up, 0, seed)
    until(lambda: status_of(home)["streams"] == [])
    pid = status_of(home)["pid"]
    before = held_at_rest(pid)
    started = time.monotonic()
    with opened(group, home, sender=True, reads=False) as anchor:
        found = storm(group, home, 0, count, seed + 1)
        until(lambda: status_of(home)["clients"] == [os.getpid()])
        (stream,) = status_of(home)["streams"]
        assert (stream["clients"], stream["readers"]) == (1, [])
        assert [peer.name for peer in anchor.members().senders] == [anchor.name]
    took = time.monotonic() - started
    until(lambda: status_of(home)["streams"] == [])
    status = status_of(home)
    assert (status["pid"], status["clients"]) == (pid, [])
    after = held_at_rest(pid)
    assert after == before, (after - before, before - after)
    assert children_left(group) == []
    _check_records(home, group, found["acknowledged"])
    return {"clients": count, "killed": found["killed"], "seconds": round(took, 1)}


def _check_records(home: Path, group: str, acknowledged: object) -> None:
    """Every record of a client that ended well is there once; of one that was killed at most once."""
    assert isinstance(acknowledged, list)
    for log in logs_of(home):
        records_in(log)
    with opened(group, home, sender=True, start="earliest") as reader:
        reader.send(b"end", ack="delivered")
        values = []
        while (event := reader.read(timeout=PATIENCE_SECONDS)) is None or getattr(event, "value", b"") != b"end":
            if isinstance(event, ig.Message):
                values.append(int(event.value))
    numbers = [value for value in values if value >= 0]
    assert len(numbers) == len(set(numbers))
    assert set(acknowledged) <= set(numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Many clients that come and go.")
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    with sites() as there:
        print(run_clients(there.home(), chosen.clients, chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
