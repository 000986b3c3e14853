"""A process that writes a log on real files is killed; what it acknowledged is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import open_log
from intergroup_core.runtime.disk import FileDisk
from tests.log_builders import a_history, contents, what_was_delivered

ROOT = Path(__file__).parents[2]
DELIVERIES = 2_000

WRITER = f"""
import sys
from pathlib import Path
from random import Random
from intergroup_core.log.writer import Durability
from intergroup_core.runtime.disk import FileDisk
from tests.log_builders import a_history, a_log

directory, seed = Path(sys.argv[1]), int(sys.argv[2])
history = a_history(Random(seed), {DELIVERIES})
log = a_log(FileDisk.locked(directory), segment_bytes=8_000)
for number, delivered in enumerate(history):
    log.append(delivered)
    if number % 5 == 4:
        log.flush(Durability.DISK)
        print(number + 1, flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_a_killed_writer_acknowledged_is_there(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "log"), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(Random(seed).randint(1, 200)):
            line = writer.stdout.readline()
        writer.kill()
        rest = writer.stdout.read().splitlines()
    acknowledged = int([line, *rest][-1])
    disk = FileDisk.locked(tmp_path / "log")
    log = open_log(disk, segment_bytes=8_000)
    history = a_history(Random(seed), DELIVERIES)
    expected = [what_was_delivered(delivered) for delivered in history]
    found = contents(LogReader(disk))
    assert log.report.damages == []
    assert acknowledged <= len(found) < DELIVERIES
    assert found == expected[: len(found)]
    for delivered in history[len(found) :]:
        log.append(delivered)
    log.close()
    disk.close()
    assert contents(LogReader(FileDisk(tmp_path / "log"))) == expected
