"""Values that are Arrow IPC streams of one row each, so that a row of the result is a record that was sent."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from pyspark_intergroup.strict_values import Decoded, Mismatch


class ArrowValues:
    """Columns of a schema from Arrow: missing columns are null, others are ignored."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def decode(self, values: pa.Array) -> Decoded:
        """Of binary values, none of them null."""
        malformed: dict[int, str] = {}
        alike: dict[pa.Schema, list[tuple[int, pa.RecordBatch]]] = {}
        schema: pa.Schema | None = None
        group: list[tuple[int, pa.RecordBatch]] = []
        for row, value in enumerate(values):
            try:
                batch = _one_row(value.as_buffer())
            except Mismatch as mismatch:
                malformed[row] = str(mismatch)
                continue
            if schema is None or not batch.schema.equals(schema):  # far quicker than to look it up
                schema = batch.schema
                group = alike.setdefault(schema, [])
            group.append((row, batch))
        order: list[int] = []
        parts: list[list[pa.Array]] = []
        for together in alike.values():
            for rows, columns in self._converted(together, malformed):
                order += rows
                parts.append(columns)
        return Decoded(self._in_order(order, parts, len(values)), malformed)

    def _converted(
        self, group: list[tuple[int, pa.RecordBatch]], malformed: dict[int, str]
    ) -> list[tuple[list[int], list[pa.Array]]]:
        """Rows of one schema at once; where that fails, each by itself."""
        try:
            columns = self._columns(pa.Table.from_batches([batch for _, batch in group]), len(group))
            return [([row for row, _ in group], columns)]
        except Mismatch as mismatch:
            if len(group) == 1:
                malformed[group[0][0]] = str(mismatch)
                return []
        return [part for single in group for part in self._converted([single], malformed)]

    def _columns(self, table: pa.Table, rows: int) -> list[pa.Array]:
        try:
            table.validate(full=True)  # it came from elsewhere: offsets may point anywhere
            return [_column(table, field, rows) for field in self._schema]
        except Mismatch:
            raise
        except (pa.ArrowException, ValueError) as error:  # ValueError: a name that is not UTF-8
            raise Mismatch(f"it is not valid Arrow ({error!s:.80})") from None

    def _in_order(self, order: list[int], parts: list[list[pa.Array]], rows: int) -> list[pa.Array]:
        """The columns of the parts, which hold these rows, as columns of all rows."""
        if order == list(range(rows)) and len(parts) == 1:
            return parts[0]
        places: list[int | None] = [None] * rows
        for place, row in enumerate(order):
            places[row] = place
        taken = pa.array(places, type=pa.int64())
        return [
            pa.concat_arrays([part[number] for part in parts] or [pa.nulls(0, field.type)]).take(taken)
            for number, field in enumerate(self._schema)
        ]


def _one_row(value: pa.Buffer) -> pa.RecordBatch:
    batches: list[pa.RecordBatch] = []
    try:
        with pa.ipc.open_stream(value) as reader:
            for batch in reader:
                if batch.num_rows:
                    batches.append(batch)
                if len(batches) > 1:
                    break
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Mismatch(f"it is not an Arrow IPC stream ({error!s:.80})") from None
    if len(batches) != 1 or batches[0].num_rows != 1:
        raise Mismatch(f"it is an Arrow IPC stream of {'several rows' if batches else 'no rows'}, and must have one")
    return batches[0]


def _column(table: pa.Table, field: pa.Field, rows: int) -> pa.Array:
    match table.schema.get_all_field_indices(field.name):
        case []:
            return pa.nulls(rows, field.type)  # a table without columns does not know how many rows it had
        case [place]:
            column = table.column(place)
        case _:
            raise Mismatch(f"column {field.name}: there are several of that name")
    if not _fits(column.type, field.type):
        raise Mismatch(f"column {field.name}: {column.type} is not {field.type}")
    try:
        whole = column.combine_chunks() if column.type == field.type else column.cast(field.type).combine_chunks()
    except pa.ArrowException as error:
        raise Mismatch(f"column {field.name}: {error!s:.80}") from None
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type is another form of the one wanted; Arrow would cast a good deal more, even text to numbers."""
    if given == wanted or kinds.is_null(given):
        return True
    if kinds.is_dictionary(given):
        return _fits(given.value_type, wanted)
    if kinds.is_floating(wanted):
        return bool(kinds.is_floating(given) or kinds.is_integer(given))
    if kinds.is_timestamp(given) and kinds.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    if _is_list(given) and _is_list(wanted):
        return _fits(given.value_type, wanted.value_type)
    if kinds.is_struct(given) and kinds.is_struct(wanted):
        return all(
            given.get_field_index(field.name) >= 0 and _fits(given.field(field.name).type, field.type)
            for field in wanted
        )
    if kinds.is_map(given) and kinds.is_map(wanted):
        return _fits(given.key_type, wanted.key_type) and _fits(given.item_type, wanted.item_type)
    return any(
        alike(given) and alike(wanted)
        for alike in (kinds.is_integer, _is_text, _is_bytes, kinds.is_date, kinds.is_decimal)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or str(kind) == "string_view")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    )
