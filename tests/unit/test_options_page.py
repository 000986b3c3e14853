from __future__ import annotations

from pathlib import Path

from intergroup_core.bounds import settings_of
from intergroup_core.cli.options_page import options_page
from intergroup_core.config import SECTIONS

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == options_page(), "docs/options.md is out of date: type  make docs"


def test_every_setting_has_a_row_with_its_meaning() -> None:
    page = options_page()
    for section, kind in SECTIONS.items():
        _, _, table = page.partition(f"## `[{section}]`")
        rows = table.partition("\n## ")[0].splitlines()
        for setting in settings_of(kind):
            (row,) = [row for row in rows if row.startswith(f"| `{setting.name}` |")]
            meaning = row.split("|")[2].strip()
            assert meaning.endswith("."), row
            assert setting.allowed in row
