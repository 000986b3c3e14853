"""Values that are msgpack: a map of fields, or an array with an element for every column, in the schema's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack
import pyarrow as pa

from pyspark_intergroup.strict_values import Decoded, Mismatch, StrictColumns

_TIMESTAMPS_AS_DATETIME = 3


class MsgpackValues:
    """Columns of a schema from msgpack: missing fields of a map are null, others are ignored."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names
        self._strict = StrictColumns(schema, base64=False)

    def decode(self, values: pa.Array) -> Decoded:
        """Of binary values, none of them null."""
        return self._strict.decoded(values.to_pylist(), self._record)

    def _record(self, value: bytes) -> Mapping[Any, Any]:
        try:
            record = msgpack.unpackb(value, strict_map_key=False, timestamp=_TIMESTAMPS_AS_DATETIME)
        except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
            raise Mismatch(f"it is not msgpack ({str(error) or type(error).__name__:.80})") from None
        if type(record) is dict:
            return record
        if type(record) is not list:
            raise Mismatch("it is neither a map nor an array in msgpack")
        # By place alone a field too many or too few could be any of them.
        if len(record) != len(self._names):
            raise Mismatch(f"it is an array of {len(record)}, and the schema has {len(self._names)} columns of a value")
        return dict(zip(self._names, record, strict=True))
