"""What a setting may be: read from its annotation, checked when its section is made, printed in the options page."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from intergroup_core.errors import ConfigError

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True, slots=True)
class Between:
    """The least and the greatest value allowed."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a section: its type, bounds and default."""

    name: str
    kind: type
    between: Between | None
    default: Any

    @property
    def allowed(self) -> str:
        if self.between is None:
            return _KINDS[self.kind]
        return f"{_KINDS[self.kind]} from {_plain(self.between.low)} to {_plain(self.between.high)}"

    def takes(self, value: object) -> bool:
        # bool is an int to Python, and TOML writes 5 where a float is meant.
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        if not isinstance(value, (int, float) if self.kind is float else self.kind):
            return False
        return self.between is None or (
            isinstance(value, (int, float)) and self.between.low <= value <= self.between.high
        )


@cache
def settings_of(section: type) -> tuple[Setting, ...]:
    """The settings of a section's dataclass, in the order written."""
    hints = get_type_hints(section, include_extras=True)
    return tuple(_setting(field, hints[field.name]) for field in dataclasses.fields(section))


def check(section: str, values: object) -> None:
    """Refuse the first value that its setting does not take."""
    kind: type = type(values)
    for setting in settings_of(kind):
        value = getattr(values, setting.name)
        if not setting.takes(value):
            raise ConfigError(f"{section}.{setting.name} is {value!r}; it must be {setting.allowed}")


def _setting(field: dataclasses.Field[Any], hint: Any) -> Setting:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    between = next((note for note in notes if isinstance(note, Between)), None)
    return Setting(name=field.name, kind=kind, between=between, default=field.default)


def _plain(value: float) -> str:
    # With the underscores that TOML takes too.
    return f"{value:_.0f}" if float(value).is_integer() else f"{value:g}"
