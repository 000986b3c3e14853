"""Where a read begins and ends, as its options say it; the logs turn it into cuts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from intergroup_core.errors import ConfigError, OffsetsUnusable, RangeMalformed
from intergroup_core.ids import ViewId
from intergroup_core.log.cut_codec import view_of_text
from pyspark_intergroup.offsets import Offsets, delivery_of
from pyspark_intergroup.option_values import OptionValues, refused

_STARTS = ("startingOffsets", "startingTimestamp", "startingView")
_ENDS = ("endingOffsets", "endingTimestamp")


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest that is still kept."""


@dataclass(frozen=True, slots=True)
class Latest:
    """What there is when the read begins."""


@dataclass(frozen=True, slots=True)
class AtCuts:
    """A cut in every group."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTime:
    """Before the first row whose place in the group's time is not earlier, in microseconds since 1970."""

    timestamp_us: int


@dataclass(frozen=True, slots=True)
class AtView:
    """Before a view's own row."""

    view: ViewId


Start = Earliest | Latest | AtCuts | AtTime | AtView
End = Latest | AtCuts | AtTime


def starting_point(values: OptionValues, *, groups: Sequence[str], delivery: str | None, streaming: bool) -> Start:
    match _the_one_of(values, _STARTS):
        case "startingTimestamp":
            return _at_time(values, "startingTimestamp")
        case "startingView":
            if len(groups) > 1:
                raise ConfigError(
                    f"startingView is a view of one group, and the groups are {', '.join(groups)}; "
                    "name one group, or give startingOffsets for each"
                )
            return AtView(_view(values, "startingView"))
        case "startingOffsets":
            point = _at_offsets(values, "startingOffsets", groups, delivery)
            if isinstance(point, Latest) and not streaming:
                raise ConfigError("startingOffsets is 'latest', behind all that a batch could read; use earliest")
            return point
        case _:
            return Latest() if streaming else Earliest()


def ending_point(values: OptionValues, *, groups: Sequence[str], delivery: str | None) -> End:
    """Where a batch ends."""
    match _the_one_of(values, _ENDS):
        case "endingTimestamp":
            return _at_time(values, "endingTimestamp")
        case "endingOffsets":
            point = _at_offsets(values, "endingOffsets", groups, delivery)
            if isinstance(point, Earliest):
                raise ConfigError("endingOffsets is 'earliest', before all that a batch could read; use latest")
            return point
        case _:
            return Latest()


def view_option(values: OptionValues, name: str) -> ViewId | None:
    """A view by its id, where one is given."""
    return _view(values, name) if name in values else None


def _the_one_of(values: OptionValues, names: Sequence[str]) -> str | None:
    given = [name for name in names if name in values]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} are both given; a read takes only one of {', '.join(names)}")
    return given[0] if given else None


def _at_time(values: OptionValues, name: str) -> AtTime:
    moment = values.moment_us(name)
    assert moment is not None
    return AtTime(moment)


def _view(values: OptionValues, name: str) -> ViewId:
    text = values.text(name)
    assert text is not None
    try:
        view = view_of_text(text)
    except RangeMalformed:
        view = None
    if view is None:
        raise refused(
            name, text, "the id of a view as the column view_id shows it, such as 0123456789abcdef-0123456789abcdef-1"
        )
    return view


def _at_offsets(
    values: OptionValues, name: str, groups: Sequence[str], delivery: str | None
) -> Earliest | Latest | AtCuts:
    text = values.text(name)
    assert text is not None
    match text.lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise refused(name, text, "earliest, latest or a JSON object of a cut per group")
    try:
        offsets = _offsets(content)
    except OffsetsUnusable as error:
        raise ConfigError(f"{name} is not a JSON object of a cut per group: {error}") from None
    if groups and offsets.keys() != set(groups):
        raise ConfigError(
            f"{name} is for {', '.join(offsets)} and the read is of {', '.join(sorted(groups))}; "
            "give a cut for each group, and for no other"
        )
    for group, cut in offsets.items():
        if delivery is not None and delivery_of(cut) != delivery:
            raise ConfigError(
                f"{name} has a cut of {delivery_of(cut)} for {group} and the read is in {delivery}, whose order is "
                "another; give cuts of that, or change delivery"
            )
    return AtCuts(offsets)


def _offsets(content: dict[str, Any]) -> Offsets:
    # A version that is a number is no group's cut: somebody copied what a checkpoint holds.
    return Offsets.of_json(content) if type(content.get("version")) is int else Offsets.of_groups(content)
