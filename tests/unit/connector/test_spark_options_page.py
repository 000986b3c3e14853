from __future__ import annotations

from pathlib import Path

from pyspark_intergroup.option_table import READ_OPTIONS
from pyspark_intergroup.options_page import options_page

PAGE = Path(__file__).parents[3] / "docs" / "spark-options.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == options_page(), "docs/spark-options.md is out of date: type  make docs"


def test_every_option_has_one_row_with_its_meaning() -> None:
    rows = options_page().splitlines()
    for option in READ_OPTIONS:
        (row,) = [row for row in rows if row.startswith(f"| `{option.name}` |")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row
        assert cells[3].endswith("."), row
