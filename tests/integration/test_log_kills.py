"""A process that writes a log on real files is killed; what it acknowledged is there.

Also where it writes over the files of segments that it removed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.verification import verify
from intergroup_core.log.writer import open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import START
from tests.log_builders import a_chunk, a_history, contents, what_was_delivered

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


SIZES = (40, 3_000, 50_000)
"""Of messages, one after another: the larger ones are often torn."""
ROUND_WRITER = """
import sys
from pathlib import Path
from intergroup_core.runtime.disk import FileDisk
from tests.integration.test_log_kills import a_message
from tests.log_builders import a_log

disk = FileDisk.locked(Path(sys.argv[1]))
log = a_log(disk, segment_bytes=400_000)
number = spared = 0
while True:
    log.append(a_message(number))
    number += 1
    if len(log.sealed) > 2:
        log.remove(log.sealed[:-2])
        spared += disk.spares
    if number % 100 == 0 and number > 400:
        print(number, spared, flush=True)
"""


def a_message(number: int) -> Chunk:
    return a_chunk(
        Random(number).randbytes(SIZES[number % 3]), seq=1 + number, timestamp=START + 1 + number, body=8_000
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_writer_leaves_a_sound_log_in_files_that_were_used_before(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-c", ROUND_WRITER, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(1 + seed):
            line = writer.stdout.readline()
        writer.kill()
        rest = writer.stdout.read().splitlines()
    appended, spared = map(int, [line, *rest][-1].split())
    disk = FileDisk.locked(tmp_path / "log")
    assert verify(disk, read_manifest(disk)).damages == []
    log = open_log(disk, segment_bytes=400_000)
    first, stop = log.manifest.first, log.appended
    assert (log.report.damages, stop >= appended) == ([], True)
    assert spared > 10
    log.append(a_message(stop))
    assert contents(LogReader(disk)) == [what_was_delivered(a_message(number)) for number in range(first, stop + 1)]
    log.close()
    disk.close()
