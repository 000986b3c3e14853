"""What a site's own logs of `rto` have for a stream of `rso`, looked at again and again while they grow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intergroup_core.agent import own_order
from intergroup_core.agent.own_order import OwnOrder
from intergroup_core.ids import Service
from intergroup_core.log.writer import open_log
from intergroup_core.runtime.stream_store import StreamStore
from tests.builders import GROUP, START, A
from tests.log_builders import a_chunk, an_install


def test_what_is_written_into_a_file_that_stays_as_long_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StreamStore(tmp_path)
    disk = store.create_part(GROUP, Service.RTO, START)
    log = open_log(disk)
    log.append(an_install(A, joined=(A,), before=((A, 0),)))
    (segment,) = Path(disk.where).glob("*.segment")
    order = OwnOrder(store, GROUP)
    # As a file that was used before, which is longer than what is in it.
    os.truncate(segment, 1 << 16)

    def long_ago(ns: int) -> None:
        for path in Path(disk.where).iterdir():
            os.utime(path, ns=(ns, ns))

    long_ago(1_000)
    (before,) = order._look()
    monkeypatch.setattr(own_order, "OrderedSources", lambda parts: pytest.fail("nothing was written"))
    assert order._look() == [before]
    monkeypatch.undo()

    log.append(a_chunk(b"more", seq=1, timestamp=START + 1))
    long_ago(2_000)
    (after,) = order._look()
    assert after.head != before.head


def test_a_look_within_the_tick_of_a_write_is_not_kept(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    disk = store.create_part(GROUP, Service.RTO, START)
    log = open_log(disk)
    log.append(an_install(A, joined=(A,), before=((A, 0),)))
    order = OwnOrder(store, GROUP)
    order._look()
    assert order._held[0] is None
