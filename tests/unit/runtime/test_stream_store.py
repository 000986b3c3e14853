"""Where a site keeps its streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.errors import ConfigError
from intergroup_core.ids import Service, Timestamp
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.manifest import read_manifest, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.writer import open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore, directory_of, logs_under
from tests.builders import START, A
from tests.log_builders import a_chunk, an_install

NOW = Timestamp(START)
RTO = Service.RTO


def filled(disk: FileDisk, start: int = START) -> int:
    """A part with something in it, closed; its log id."""
    log = open_log(disk)
    log.append(an_install(A, start=start))
    log.append(a_chunk(b"x", timestamp=start + 1))
    log.close()
    disk.close()
    return log.manifest.log


def test_a_part_is_made_and_found(tmp_path: Path) -> None:
    store = StreamStore(tmp_path / "streams")
    assert (store.streams(), store.parts("prices", RTO)) == ([], [])
    after = OrderCut(START, A)
    disk = store.create_part("prices", RTO, NOW, after=after)
    log = filled(disk)
    assert log
    assert store.streams() == [("prices", RTO)]
    (part,) = store.parts("prices", RTO)
    manifest = read_manifest(part)
    assert (manifest.log, manifest.group, manifest.service, manifest.after) == (log, "prices", RTO, after)
    assert StreamReader(store.parts("prices", RTO)).highest == START + 1


def test_parts_sort_by_their_making_whatever_the_clock_says(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    logs = [filled(store.create_part("g", RTO, Timestamp(created))) for created in (START, START - 50, 0, START + 9)]
    assert [read_manifest(part).log for part in store.parts("g", RTO)] == logs


def test_groups_and_services_are_apart_and_their_names_exact(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    groups = ["prices/eu", "prices:eu", "..", "", "Bücher", "x" * 300, "a\0b"]
    streams = {(group, service) for group in groups for service in (RTO, Service.UU)}
    for group, service in streams:
        filled(store.create_part(group, service, NOW))
    assert set(store.streams()) == streams
    assert all(len(store.parts(*stream)) == 1 for stream in streams)
    assert {path.parent for path in tmp_path.iterdir()} == {tmp_path}
    assert directory_of("prices/eu").startswith("prices_eu-")
    assert max(len(directory_of(group)) for group in groups) < 80


def test_directories_are_for_their_owner_only(tmp_path: Path) -> None:
    store = StreamStore(tmp_path / "streams")
    store.create_part("g", RTO, NOW).close()
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "streams").rglob("*") if path.is_dir()}
    assert modes == {0o700}


def test_a_part_is_removed_whole_but_not_while_somebody_writes_it(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    first = filled(store.create_part("g", RTO, NOW))
    writing = store.create_part("g", RTO, NOW)
    reader = LogReader(store.parts("g", RTO)[0])
    with pytest.raises(ConfigError, match="another process writes the log"):
        store.remove_part("g", RTO, read_manifest(writing).log)
    store.remove_part("g", RTO, first)
    store.remove_part("g", RTO, first)
    assert [part.where for part in store.parts("g", RTO)] == [writing.where]
    assert len(list(reader.entries(0))) == 2  # it was mapped before
    writing.close()


def test_parts_that_hold_nothing_are_removed_and_others_stay(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    kept = filled(store.create_part("g", RTO, NOW))
    store.create_part("g", RTO, NOW).close()
    filled(store.create_part("g", RTO, NOW, fetching=True))
    writing = store.create_part("g", RTO, NOW)
    filling = store.create_part("g", RTO, NOW, after=OrderCut(START, A))
    log = open_log(filling)
    log.bound(upto=OrderCut(START + 7, A))
    log.close()
    filling.close()
    directory = Path(filling.where).parent
    unmade, half = directory / f"{START + 99:016x}-{1:016x}", directory / f"{START:016x}-{2:016x}.removed"
    unmade.mkdir()
    half.mkdir()
    damaged = store.create_part("g", RTO, NOW)
    (Path(damaged.where) / "manifest").write_text("nonsense")
    damaged.close()
    assert store.remove_empty("g", RTO) == 3
    assert not unmade.exists()
    assert not half.exists()
    left = {part.where for part in store.parts("g", RTO)}
    assert left == {writing.where, filling.where, damaged.where} | {w for w in left if w.endswith(f"-{kept:016x}")}
    assert len(left) == 4
    assert store.streams() == [("g", RTO)]
    writing.close()


def test_after_a_crash_parts_are_put_right_before_they_are_read(tmp_path: Path) -> None:
    store = StreamStore(tmp_path)
    filled(store.create_part("g", RTO, NOW))
    writing = store.create_part("g", RTO, NOW)
    (part, _) = store.parts("g", RTO)
    segment = Path(part.where) / segment_name(0)
    size = segment.stat().st_size
    segment.write_bytes(segment.read_bytes() + b"torn" * 10)
    (report,) = store.recover("g", RTO)
    assert [cut.removed_bytes for cut in report.cuts] == [40]
    assert segment.stat().st_size == size
    writing.close()


def test_a_group_can_lie_elsewhere_and_is_found_as_before(tmp_path: Path) -> None:
    store = StreamStore(tmp_path / "streams")
    store.put_elsewhere("prices", tmp_path / "large")
    log = filled(store.create_part("prices", RTO, NOW))
    store.put_elsewhere("prices", tmp_path / "large")  # again, as after a restart

    (kept,) = (tmp_path / "large").rglob("*.segment")
    assert kept.stat().st_size
    (tmp_path / "streams" / "around").symlink_to(tmp_path / "streams")
    assert [found.resolve() for found in logs_under(tmp_path / "streams")] == [kept.parent]
    (tmp_path / "streams" / "around").unlink()
    (part,) = StreamStore(tmp_path / "streams").parts("prices", RTO)
    assert read_manifest(part).log == log
    assert store.streams() == [("prices", RTO)]
    store.remove_part("prices", RTO, log)
    assert store.streams() == []


def test_a_group_that_lies_somewhere_stays_there(tmp_path: Path) -> None:
    store = StreamStore(tmp_path / "streams")
    filled(store.create_part("here", RTO, NOW))
    store.put_elsewhere("there", tmp_path / "large")
    for group in ("here", "there"):
        with pytest.raises(ConfigError, match=f"the log of group {group} lies in .*, not in .*other; leave"):
            store.put_elsewhere(group, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_directory_that_is_gone_is_made_again(tmp_path: Path) -> None:
    store = StreamStore(tmp_path / "streams")
    store.put_elsewhere("prices", tmp_path / "large")
    (tmp_path / "large" / directory_of("prices")).rmdir()
    store.put_elsewhere("prices", tmp_path / "small")
    filled(store.create_part("prices", RTO, NOW))
    assert list((tmp_path / "small").rglob("*.segment"))
