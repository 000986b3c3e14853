"""Writes docs/options.md from the settings themselves: `python -m intergroup_core.cli.options_page`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from intergroup_core import config as settings
from intergroup_core.bounds import Setting, settings_of
from intergroup_core.presets import PRESETS

_HEAD = """\
# Settings

Written by `make docs` from `intergroup_core/config.py`; a test fails when it is out of date.

A settings file is TOML: a section per table below, `name = value` in it. What a file does not name keeps its default.
An unknown name, a value of the wrong type or out of its range, and values that contradict one another are refused
with a sentence that names the setting. From Python: `Config.load(path)`, or the presets `Config.lan()` (the defaults),
`Config.wan()` and `Config.test()`; `conf/` holds them as commented files. A preset's column is empty where it keeps the
default. D, R and T refer to `docs/protocol.md`.
"""


def options_page() -> str:
    """The whole page."""
    sections = "\n".join(_section(name, kind) for name, kind in settings.SECTIONS.items())
    return f"{_HEAD}\n{sections}"


def _section(name: str, kind: type) -> str:
    meanings = dict(_field_docs(kind))
    rows = "\n".join(_row(name, setting, meanings[setting.name]) for setting in settings_of(kind))
    return (
        f"## `[{name}]`\n\n{inspect.getdoc(kind)}\n\n"
        "| setting | meaning | allowed | default | `wan` | `test` |\n|---|---|---|---|---|---|\n"
        f"{rows}\n"
    )


def _row(section: str, setting: Setting, meaning: str) -> str:
    cells = [f"`{setting.name}`", meaning, setting.allowed, _code(setting.default)]
    cells += [_preset_cell(preset, section, setting) for preset in ("wan", "test")]
    return "| " + " | ".join(cells) + " |"


def _preset_cell(preset: str, section: str, setting: Setting) -> str:
    value = PRESETS[preset].get(section, {}).get(setting.name, setting.default)
    return "" if value == setting.default else _code(value)


def _code(value: object) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case int():
            return f"`{value:_}`"
        case float():
            return f"`{value:_.0f}`" if value.is_integer() else f"`{value:g}`"
        case _:
            return f'`"{value}"`'


def _field_docs(kind: type) -> Iterator[tuple[str, str]]:
    # Python keeps no docstring of a field: it is the string statement that follows it.
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                yield name, doc


if __name__ == "__main__":
    print(options_page(), end="")
