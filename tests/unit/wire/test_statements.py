"""Statements on the wire: back as they were, found among data, and nothing else taken for one."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import MAX_TIMESTAMP
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.fields import MAX_LEDGER
from intergroup_core.wire.header import MAX_SEQ
from intergroup_core.wire.labels import MAX_TIMEOUT_S, MAX_VERSION, key_of
from intergroup_core.wire.records import unpack_records
from intergroup_core.wire.statements import (
    MAX_SECONDS,
    Abandoned,
    Decided,
    Established,
    Gathering,
    Holding,
    Proposed,
    Restated,
    Statement,
    decode_statement,
    encode_statement,
    statements_in,
)
from tests.builders import LAST, START, a_frame, packed
from tests.log_builders import chunk_of

site = st.integers(0, (1 << 64) - 1)
member = st.integers(1, (1 << 64) - 1)
seq = st.integers(0, MAX_SEQ)
nonce = st.integers(0, MAX_TIMESTAMP)
version = st.integers(0, MAX_VERSION)
app = st.text(min_size=1, max_size=16)
sites = st.lists(site, max_size=5).map(tuple)
staged = st.builds(Staged, *[st.integers(0, (1 << 64) - 1)] * 8)
statements = st.one_of(
    st.builds(Holding, site, st.text(max_size=16), st.booleans(), st.integers(0, MAX_SECONDS), nonce),
    st.builds(Restated, st.binary(max_size=3_000)),
    st.builds(Gathering, nonce),
    st.builds(Established, nonce, nonce, sites),
    st.builds(
        Proposed,
        nonce,
        app,
        app,
        version,
        st.booleans(),
        st.integers(1, MAX_TIMEOUT_S),
        st.lists(staged, max_size=3).map(tuple),
    ),
    st.builds(Decided, nonce, app.map(key_of), version, member, seq, nonce, sites),
    st.builds(Abandoned, app, app, version),
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
        assert found is None or isinstance(found, Statement)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [3],
        [8, 1],
        ["3", 1],
        [1, 1, "a", True],
        [1, -1, "a", True, 1],
        [1, 1, "a" * 65, True, 1],
        [1, 1, "a", 1, 1],
        [1, 1, "a", True, 1, -1],
        [1, 1, "a", True, 1, 2, 3],
        [2, 5],
        [2, b"x" * (MAX_LEDGER + 1)],
        [3, -1],
        [3, 1, 2],
        [4, 1, 2],
        [4, 1, 2, [-1]],
        [4, 1, 1 << 63, [1]],
        [5, 1, "", "run", 1, True, 60, b""],
        [5, 1, "app", "run", -1, True, 60, b""],
        [5, 1, "app", "run", 1, 1, 60, b""],
        [5, 1, "app", "run", 1, True, 0, b""],
        [5, 1, "app", "run", 1, True, 60, b"x" * 63],
        [5, 1, "a" * 129, "run", 1, True, 60, b""],
        [6, 1, b"key", 1, 1, 1, 1, [1]],
        [6, 1, b"k" * 12, 1, 0, 1, 1, [1]],
        [6, 1, b"k" * 12, 1, 1, 1, [1]],
        [6, 1, "k" * 12, 1, 1, 1, 1, [1]],
        [7, "app", "run"],
        [7, "app", 1, 1],
    ],
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
