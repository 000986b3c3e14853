"""Headers of a record: a msgpack array of pairs, text and bytes; nothing at all where there are none."""

from __future__ import annotations

from collections.abc import Iterable

import msgpack

from intergroup_core.wire.fields import BadBody, array

Headers = tuple[tuple[str, bytes | None], ...]

MAX_HEADERS = 4_096
"""Of one record."""


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    pairs = [[key, value] for key, value in headers]
    packed: bytes = msgpack.packb(pairs) if pairs else b""
    return packed


def decode_headers(data: bytes) -> Headers:
    """The headers in these bytes, none where they are not headers."""
    if not data:
        return ()
    try:
        most = min(MAX_HEADERS, len(data))
        pairs = array(msgpack.unpackb(data, use_list=True, max_array_len=most, max_map_len=0, max_ext_len=0))
        return tuple(_header(*array(pair, 2)) for pair in pairs)
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return ()


def _header(key: object, value: object) -> tuple[str, bytes | None]:
    if type(key) is not str or not (value is None or type(value) is bytes):
        raise BadBody
    return key, value
