"""The ledger at any place of a stream, from its logs, is that of who has followed it from its beginning."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import RangeUnavailable
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.stream import StreamReader
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.replay import follow, ledger_at
from tests.builders import START, A
from tests.log_builders import an_install
from tests.unit.connector.transacted import Agent, History, parted, some_history, stored


def followed(stream: StreamReader) -> list[tuple[OrderCut, bytes]]:
    """What is known behind each entry to who reads from the beginning."""
    first, head = stream.first(), stream.head()
    assert isinstance(first, OrderCut)
    assert isinstance(head, OrderCut)
    ledger, view, found = Ledger(), first.view, []
    for piece in stream.pieces(first, head):
        follow(ledger, piece)
        if piece.entry.kind.name == "VIEW":
            view = piece.entry.install().view.id
        header = piece.entry.header
        found.append((OrderCut(header.last_timestamp, header.source, view), ledger.checkpoint()))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_one_knows_who_followed_the_stream(tmp_path: Path, seed: int) -> None:
    history = some_history(Random(seed), 80)
    stream = StreamReader([stored(tmp_path / "log", history.deliveries, segment=2_500)])
    assert len(stream.parts[0].segments) > 3
    for cut, known in followed(stream):
        assert ledger_at(stream, cut).checkpoint() == known


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_same_where_a_member_began_a_new_log(tmp_path: Path, seed: int) -> None:
    history = some_history(Random(seed), 60)
    known = followed(StreamReader([stored(tmp_path / "log", history.deliveries)]))
    stream = StreamReader(parted(tmp_path, history.deliveries, len(history.deliveries) // 2))
    for cut, stated in known:
        assert ledger_at(stream, cut).checkpoint() == stated


def test_what_was_fetched_and_does_not_say_it_is_reached_from_what_lies_before(tmp_path: Path) -> None:
    history = History()
    history.flush()
    established = len(history.deliveries)
    history.stage(7, b"staged")
    history.flush()
    history.propose(7)
    history.flush()
    whole = stored(tmp_path / "whole", history.deliveries)
    known = followed(StreamReader([whole]))
    disks = [stored(tmp_path / "log", history.deliveries[:established])]
    Agent(tmp_path, disks, whole).fill(known[established - 1][0], known[-1][0], 1.0)
    stream = StreamReader(disks)
    for cut, stated in known:
        assert ledger_at(stream, cut).checkpoint() == stated


def test_a_place_that_is_not_held_is_refused(tmp_path: Path) -> None:
    stream = StreamReader([stored(tmp_path / "log", [an_install(A)])])
    with pytest.raises(RangeUnavailable, match="does not hold"):
        ledger_at(stream, OrderCut(START + 5_000, A))
