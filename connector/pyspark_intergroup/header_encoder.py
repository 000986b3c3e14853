"""Headers of rows, a column of lists at a time: the msgpack arrays of pairs that messages carry."""

from __future__ import annotations

from collections.abc import Callable

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from intergroup_core.errors import ValueMalformed
from intergroup_core.wire.headers import MAX_HEADERS
from intergroup_core.wire.records import RecordBatch
from pyspark_intergroup.arrow_records import records_of

_NIL = -1
"""The length of a value that is null."""


def header_records(column: pa.Array) -> RecordBatch | None:
    """Of lists of structs of a key and a value; empty where a row has none, None where no row has any."""
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    if not counts.any():
        return None
    if counts.max() > MAX_HEADERS:
        raise ValueMalformed(f"a row has {counts.max()} headers; it may have {MAX_HEADERS} at most")
    pairs = column.flatten()
    keys, values = pairs.flatten()
    if pairs.null_count or keys.null_count:
        raise ValueMalformed("a row has a header without a key; give it one, or leave it out of headers")
    try:
        keys.validate(full=True)
    except pa.ArrowException as error:  # Spark lets text be any bytes
        raise ValueMalformed(f"the key of a header is not text: {error!s:.200}") from None
    packed = pc.binary_join_element_wise(
        b"\x92",
        _prefixes(_lengths(keys), _text_prefix),
        keys.cast(pa.binary()),
        _prefixes(_lengths(values), _bytes_prefix),
        pc.fill_null(values.cast(pa.binary()), b""),
        b"",
    )
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, packed), b"")
    return records_of(pc.binary_join_element_wise(_prefixes(counts, _list_prefix), joined, b""))


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = pc.fill_null(pc.binary_length(column), _NIL).to_numpy().astype(np.int64)
    return lengths


def _prefixes(lengths: NDArray[np.int64], prefix: Callable[[int], bytes]) -> pa.Array:
    """What stands before something of a length; there are few different ones."""
    different, which = np.unique(lengths, return_inverse=True)
    return pa.array([prefix(int(length)) for length in different], pa.binary()).take(pa.array(which))


def _text_prefix(length: int) -> bytes:
    return _before(msgpack.packb("\x00" * length), length)


def _bytes_prefix(length: int) -> bytes:
    return _before(msgpack.packb(None if length == _NIL else bytes(length)), max(0, length))


def _before(packed: bytes, length: int) -> bytes:
    return packed[: len(packed) - length]


def _list_prefix(count: int) -> bytes:
    packed: bytes = msgpack.Packer().pack_array_header(count) if count else b""
    return packed
