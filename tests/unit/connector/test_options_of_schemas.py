"""Options of a read with a schema of the user's own."""

from __future__ import annotations

import pytest

from intergroup_core.errors import ConfigError
from pyspark_intergroup.options import KINDS
from tests.unit.connector.reads import a_decoded, a_stream


def test_values_are_json_unless_something_else_is_said() -> None:
    options = a_decoded()
    assert (options.value_format, options.mode, options.corrupt_column) == ("json", "PERMISSIVE", "_corrupt_record")


def test_how_values_are_decoded() -> None:
    options = a_decoded(valueFormat="MsgPack", mode="failFast", columnNameOfCorruptRecord="bad")
    assert (options.value_format, options.mode, options.corrupt_column) == ("msgpack", "FAILFAST", "bad")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"valueFormat": "avro"}, "valueFormat is 'avro'; it must be arrow, json or msgpack"),
        ({"mode": "lenient"}, "mode is 'lenient'; it must be PERMISSIVE, DROPMALFORMED or FAILFAST"),
        ({"columns": "value"}, "columns is given, and a schema as well"),
        ({"columnNameOfCorruptRecord": "_value"}, "columnNameOfCorruptRecord is '_value'; it must be another name"),
        ({"failOnDataLoss": "false"}, "failOnDataLoss is 'false', and the schema has no column _kind"),
        ({"includeViews": "true"}, "includeViews asks for rows that are not data, and the schema has no column _kind"),
        ({"kinds": "data,view"}, "kinds asks for rows that are not data, and the schema has no column _kind"),
        ({"kinds": "gap"}, "kinds asks for rows that are not data, and the schema has no column _kind"),
    ],
)
def test_what_a_schema_without_kinds_refuses(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_decoded(**given)
    assert str(refused.value).startswith(said)


def test_rows_that_nobody_could_tell_from_data_are_left_out() -> None:
    assert a_decoded("price").kinds == ("data",)
    assert a_decoded("price", "kind").kinds == ("data",)
    assert a_decoded("price", kinds="data", includeViews="false").kinds == ("data",)


def test_with_their_kind_they_are_there() -> None:
    assert a_decoded("price", "_Kind").kinds == KINDS
    assert not a_decoded("price", "_kind", failOnDataLoss="false").fail_on_data_loss


@pytest.mark.parametrize("option", ["valueFormat", "mode", "columnNameOfCorruptRecord"])
def test_without_a_schema_nothing_is_decoded(option: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"^{option} is about how columns are decoded .* give a schema, or leave it out$"
    ):
        a_stream(**{option: "json"})
