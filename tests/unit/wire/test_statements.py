"""Statements on the wire: back as they were, found among data, and nothing else taken for one."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.config import HEADER_BYTES
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.records import unpack_records
from intergroup_core.wire.statements import (
    MAX_SECONDS,
    Holding,
    Restated,
    Statement,
    decode_statement,
    encode_statement,
    statements_in,
)
from tests.builders import LAST, START, a_frame, packed
from tests.log_builders import chunk_of

statements = st.one_of(
    st.builds(Holding, st.integers(0, (1 << 64) - 1), st.text(max_size=16), st.booleans(), st.integers(0, MAX_SECONDS)),
    st.builds(Restated, st.binary(max_size=3_000)),
)
HERE = Holding(7, "here", True, 60)


def chunk_of_payloads(*payloads: bytes) -> Chunk:
    """A message of one frame for each, all frames of one size."""
    width = max(map(len, payloads)) + 7 & ~7
    return chunk_of(
        [
            a_frame(seq=5 + at, timestamp=START + 1 + at, payload=payload, flags=LAST, size=HEADER_BYTES + width)
            for at, payload in enumerate(payloads)
        ]
    )


def octets(statement: Statement) -> bytes:
    payload = encode_statement(statement)
    return payload.slice(0, len(payload)).tobytes()


@given(statements)
def test_a_statement_comes_back_as_it_was(statement: Statement) -> None:
    assert decode_statement(octets(statement)) == statement


@given(statements, st.data())
def test_what_is_cut_or_changed_is_a_statement_or_nothing(statement: Statement, data: st.DataObject) -> None:
    whole = octets(statement)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    for body in (whole[:at], changed):
        found = decode_statement(body)
        assert found is None or isinstance(found, Holding | Restated)


@pytest.mark.parametrize(
    "fields", [[], [3], [1, 1, "a", True], [1, -1, "a", True, 1], [1, 1, "a" * 65, True, 1], [1, 1, "a", 1, 1], [2, 5]]
)
def test_what_this_version_does_not_know_is_no_statement(fields: list[object]) -> None:
    assert decode_statement(octets(HERE)[:4] + msgpack.packb(fields)) is None


def test_a_statement_has_no_records() -> None:
    assert unpack_records(np.frombuffer(octets(HERE), dtype=np.uint8)) is None


def test_statements_are_found_among_data_at_their_places() -> None:
    plain = packed([b"row", b"another"])
    chunk = chunk_of_payloads(plain, octets(HERE), plain, octets(Restated(b"x" * 1_000)))
    found = [(message.seq, statement) for message, statement in statements_in(chunk)]
    assert found == [(6, HERE), (8, Restated(b"x" * 1_000))]
    assert list(statements_in(chunk_of_payloads(plain, plain))) == []
