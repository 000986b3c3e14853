"""What `format("intergroup")` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_intergroup.options import ReadOptions
    from pyspark_intergroup.write_options import WriteOptions
    from pyspark_intergroup.write_schema import RowLayout


class InterGroupSource(DataSource):
    """Ordered group communication as a source and a sink. Options are checked before anything is done.

    What it needs is imported when it is needed: Spark loads this class also where nobody uses it.
    """

    def __init__(self, options: dict[str, str]) -> None:
        from pyspark_intergroup.options import check_for_some_read

        super().__init__(options)
        # Here and in `schema`, which is not called where a schema is given, an error comes out of load(); what readers
        # say comes with the first batch.
        check_for_some_read(self.options)

    @classmethod
    def name(cls) -> str:
        return "intergroup"

    def schema(self) -> StructType:
        from pyspark_intergroup.options import check_without_schema

        check_without_schema(self.options)
        return self._default_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_intergroup.batch_reader import GroupBatchReader, PushdownBatchReader

        options = self._read_options(schema, streaming=False)
        return (PushdownBatchReader if options.pushdown else GroupBatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from intergroup_core.errors import ConfigError
        from pyspark_intergroup.refused_reader import RefusedStreamReader
        from pyspark_intergroup.stream_reader import GroupStreamReader

        try:
            return GroupStreamReader(self._read_options(schema, streaming=True), schema)
        except ConfigError as error:
            return RefusedStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_intergroup.batch_writer import GroupBatchWriter

        return GroupBatchWriter(*self._write_plan(schema, overwrite, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from pyspark_intergroup.stream_writer import GroupStreamWriter

        return GroupStreamWriter(*self._write_plan(schema, overwrite, streaming=True))

    def _write_plan(self, schema: StructType, overwrite: bool, *, streaming: bool) -> tuple[WriteOptions, RowLayout]:
        from intergroup_core.errors import ConfigError
        from pyspark_intergroup.write_options import WriteOptions
        from pyspark_intergroup.write_schema import layout_of

        if overwrite:
            what = 'outputMode is "complete"' if streaming else 'the mode is "overwrite"'
            raise ConfigError(f'{what}, and nothing that was sent to a group can be taken back; use "append"')
        options = WriteOptions.of(self.options, streaming=streaming)
        return options, layout_of(schema, options)

    def _default_schema(self) -> StructType:
        from pyspark_intergroup.options import asked_columns
        from pyspark_intergroup.schema import default_schema

        return default_schema(asked_columns(self.options))

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        from pyspark_intergroup.options import ReadOptions

        given = schema != self._default_schema()
        return ReadOptions.of(
            self.options, streaming=streaming, schema_given=given, user_columns=schema.fieldNames() if given else ()
        )
