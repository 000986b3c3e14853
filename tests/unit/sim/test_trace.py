from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from intergroup_core.sim.trace import Trace, describe, digest_of, payload_of
from intergroup_core.wire.records import unpack_records
from tests.unit.sim.checkers.traces import C, Story, a_right_live_story, a_right_story


@pytest.mark.parametrize("tell", [a_right_story, a_right_live_story])
def test_a_trace_survives_its_bytes(tell: Callable[[], Story]) -> None:
    trace = tell().trace
    again = Trace.from_bytes(trace.to_bytes())
    assert again.events == trace.events
    assert again.members == trace.members
    assert (again.seed, again.live) == (trace.seed, trace.live)
    assert again.digest() == trace.digest()


def test_any_difference_shows_in_the_digest() -> None:
    trace, other = a_right_story().trace, a_right_story().trace
    other.events[3], other.events[4] = other.events[4], other.events[3]
    assert trace.digest() != other.digest()


def test_another_version_is_refused() -> None:
    data = a_right_story().trace.to_bytes().replace(b'"version":3', b'"version":1')
    with pytest.raises(ValueError, match="not a trace of version 3"):
        Trace.from_bytes(data)


def test_ids_are_shown_as_sixteen_hex_digits() -> None:
    story = a_right_story()
    story.crashes(C)
    assert describe(story.trace.events[-1])["member"] == "fffffffffffffffc"


def test_a_digest_tells_the_boundaries_of_records() -> None:
    assert digest_of(payload_of([b"ab", b"c"])) != digest_of(payload_of([b"a", b"bc"]))


def test_payloads_are_laid_out_as_messages_are() -> None:
    records = [b"", b"one", b"another"]
    batch = unpack_records(np.frombuffer(payload_of(records), dtype=np.uint8))
    assert batch is not None
    assert batch.to_list() == records
