"""Reads the values of options; what is wrong with one is said in a sentence that names it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath

from intergroup_core.client.names import checked_name
from intergroup_core.errors import ConfigError
from pyspark_intergroup.moments import iso_micros

MAX_NUMBER = (1 << 63) - 1
MAX_SECONDS = 1_000_000_000
_MAX_MILLIS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_SECONDS = {
    unit: Decimal(seconds)
    for units, seconds in (("us", "1e-6"), ("ms", "0.001"), (" s", "1"), ("m min", "60"), ("h", "3600"), ("d", "86400"))
    for unit in units.split(" ")
}
_BYTES = {
    unit: Decimal(1 << bits)
    for units, bits in ((" b", 0), ("k kb", 10), ("m mb", 20), ("g gb", 30), ("t tb", 40))
    for unit in units.split(" ")
}
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([a-z]*)", re.ASCII)
_WHOLE = re.compile("[0-9]{1,19}", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


def refused(name: str, value: str, allowed: str) -> ConfigError:
    """What every bad value is answered with."""
    return ConfigError(f"{name} is {value!r:.60}; it must be {allowed}")


@dataclass(frozen=True, slots=True)
class OptionValues:
    """What was given, by the options' names; each method is one kind of value, None where nothing was given."""

    given: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def text(self, name: str) -> str | None:
        value = self.given.get(name)
        if value is not None and not value.strip():
            raise ConfigError(f"{name} is empty; give it a value or leave it out")
        return None if value is None else value.strip()

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        for word in allowed:
            if word.lower() == value.lower():
                return word
        raise refused(name, value, one_of(allowed))

    def boolean(self, name: str) -> bool | None:
        value = self.text(name)
        if value is None:
            return None
        if value.lower() not in _BOOLEANS:
            raise refused(name, value, "true or false")
        return _BOOLEANS[value.lower()]

    def whole(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not 1 <= int(value) <= MAX_NUMBER:
            raise refused(name, value, "a whole number from 1 on")
        return int(value)

    def size(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        amount = _quantity(value, _BYTES)
        if amount is None or amount % 1 or not 1 <= amount <= MAX_NUMBER:
            raise refused(name, value, "a number of bytes from 1 on, such as 64m, 1g or 1048576")
        return int(amount)

    def seconds(self, name: str) -> float | None:
        value = self.text(name)
        if value is None:
            return None
        amount = _quantity(value, _SECONDS)
        if amount is None or not 0 < amount <= MAX_SECONDS:
            raise refused(name, value, "a duration, such as 500ms, 30s, 5m, 24h or a number of seconds")
        return float(amount)

    def words(self, name: str) -> tuple[str, ...] | None:
        """What is between commas, each once."""
        value = self.text(name)
        if value is None:
            return None
        words = tuple(word.strip() for word in value.split(","))
        if "" in words:
            raise refused(name, value, "names separated by commas, with none of them empty")
        twice = [word for place, word in enumerate(words) if word in words[:place]]
        if twice:
            raise ConfigError(f"{name} names {twice[0]!r:.60} twice; name it once")
        return words

    def names(self, name: str) -> tuple[str, ...] | None:
        words = self.words(name)
        return None if words is None else tuple(checked_name(word, f"a name in {name}") for word in words)

    def subset(self, name: str, allowed: Sequence[str]) -> tuple[str, ...] | None:
        """Some of the words that are allowed, in the order given."""
        words = self.words(name)
        if words is None:
            return None
        for word in words:
            if word not in allowed:
                raise ConfigError(f"{name} names {word!r:.60}; it must name some of {', '.join(allowed)}")
        return words

    def directory(self, name: str) -> str | None:
        """A path that means the same in every process, wherever it was started."""
        value = self.text(name)
        if value is not None and not PurePath(value).is_absolute():
            raise refused(name, value, "the absolute path of a directory")
        return value

    def moment_us(self, name: str) -> int | None:
        """Microseconds since 1970."""
        value = self.text(name)
        if value is None:
            return None
        if value.isascii() and value.isdigit():
            moment = int(value) * 1_000 if len(value) <= len(str(_MAX_MILLIS)) else -1
        else:
            moment = _iso_micros(value)
        if not 0 <= moment <= _MAX_MILLIS * 1_000 + 999:
            raise refused(
                name, value, "milliseconds since 1970 or ISO 8601, such as 2026-05-01T12:00:00Z, from 1970 to 9999"
            )
        return moment


def one_of(allowed: Sequence[str]) -> str:
    *others, last = allowed
    return f"{', '.join(others)} or {last}" if others else last


def _quantity(value: str, units: Mapping[str, Decimal]) -> Decimal | None:
    found = _QUANTITY.fullmatch(value.lower())
    if found is None or found[2] not in units:
        return None
    return Decimal(found[1]) * units[found[2]]


def _iso_micros(value: str) -> int:
    try:
        return iso_micros(value)
    except ValueError:
        return -1
