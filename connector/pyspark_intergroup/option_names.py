"""Finds options in the table by the names that were given; what is no option, or none of this use, is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from intergroup_core.errors import ConfigError
from pyspark_intergroup.option_table import OPTIONS, READ_OPTIONS, WRITE_OPTIONS, Option, Scope

_IGNORED = frozenset({"checkpointlocation"})
"""Put among the options of a sink by Spark, and of a read by those who give all their queries the same ones."""

_BY_KEY = {option.name.lower(): option for option in OPTIONS}
SINK_KEYS = frozenset(option.name.lower() for option in WRITE_OPTIONS if option.scope is not Scope.ALL)


def is_for_streams(options: Mapping[str, str]) -> bool:
    """Whether there is one among them that only streams take; without one that only batch reads do, who can tell."""
    return any((option := _BY_KEY.get(key.lower())) and option.scope is Scope.STREAMS for key in options)


def check_names(options: Mapping[str, str]) -> None:
    """A ConfigError where one is no option at all, whatever they are for."""
    for key in options:
        if key.lower() not in _IGNORED and key.lower() not in _BY_KEY:
            raise _unknown(key, OPTIONS)


def given_options(options: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """The options of a read by the names they have in the table; Spark does not keep their case."""
    given = _given(options, READ_OPTIONS, "is for writes; leave it out of a read")
    for name in given:
        scope = _BY_KEY[name.lower()].scope
        if not streaming and scope is Scope.STREAMS:
            raise ConfigError(f"{name} is for streams; leave it out of a batch read")
        if streaming and scope is Scope.BATCH:
            raise ConfigError(f"{name} is for batch reads; leave it out of a stream")
    return given


def given_write_options(options: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """The options of a write by the names they have in the table."""
    given = _given(options, WRITE_OPTIONS, "is for reads; leave it out of a write")
    for name in given:
        if streaming and _BY_KEY[name.lower()].scope is Scope.BATCH_WRITES:
            raise ConfigError(
                f"{name} is for batch writes; leave it out of a stream, whose batches are counted by its checkpoint"
            )
    return given


def _given(options: Mapping[str, str], known: Sequence[Option], misplaced: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in options.items():
        if key.lower() in _IGNORED:
            continue
        option = _BY_KEY.get(key.lower())
        if option is None:
            raise _unknown(key, known)
        if option not in known:
            raise ConfigError(f"{option.name} {misplaced}")
        if given.setdefault(option.name, value) != value:
            raise ConfigError(f"{option.name} is given twice, as {given[option.name]!r:.60} and {value!r:.60}")
    return given


def _unknown(key: str, known: Sequence[Option]) -> ConfigError:
    (nearest,) = get_close_matches(key.lower(), [option.name.lower() for option in known], n=1, cutoff=0.0)
    return ConfigError(f"there is no option {key!r:.60}; did you mean {_BY_KEY[nearest].name}?")
