"""The offset that Spark keeps in a checkpoint: a cut per group, as canonical JSON with a version of its own.

    {"groups": {name: cut, ...}, "version": 1}

Spark compares offsets as strings and never checks what they say, so equal offsets have equal text, and what is read
back is checked here: against the format, and against what the query reads.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from intergroup_core.client.names import checked_name
from intergroup_core.errors import ConfigError, LogFormat, OffsetsUnusable, RangeMalformed
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import cut_fields, cut_of_fields

OFFSETS_VERSION = 1
_SHOWN = 60
"""Characters of something malformed that an error shows."""
_LOOK = "`intergroup offsets show CHECKPOINT` says what is in it"


@dataclass(frozen=True, slots=True, eq=False)
class Offsets(Mapping[str, Cut]):
    """How far each group has been read."""

    cuts: Mapping[str, Cut]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", {group: self.cuts[group] for group in sorted(self.cuts)})

    def __getitem__(self, group: str) -> Cut:
        return self.cuts[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cuts)

    def __len__(self) -> int:
        return len(self.cuts)

    def to_json(self) -> dict[str, Any]:
        """Nested dictionaries whose keys are in order: Spark writes them in the order that it finds."""
        groups = {group: _in_order(cut_fields(cut)) for group, cut in self.cuts.items()}
        return {"groups": groups, "version": OFFSETS_VERSION}

    def to_text(self) -> str:
        """The same offsets have the same text everywhere."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @classmethod
    def of_json(cls, content: Any, *, groups: Collection[str] | None = None, delivery: str | None = None) -> Offsets:
        """The offsets that a dictionary or its text says; of these groups and this delivery, where they are given."""
        value = _parsed(content) if isinstance(content, str | bytes) else content
        if not isinstance(value, dict) or type(value.get("version")) is not int:
            raise _malformed(content)
        if value["version"] != OFFSETS_VERSION:
            raise OffsetsUnusable(
                f"these are offsets of version {value['version']}, and this version of intergroup reads version "
                f"{OFFSETS_VERSION}; go on with the version that wrote the checkpoint, or begin a new one"
            )
        if value.keys() != {"groups", "version"}:
            raise _malformed(content)
        offsets = cls.of_groups(value["groups"])
        if groups is not None:
            offsets._check_groups(groups)
        if delivery is not None:
            offsets._check_delivery(delivery)
        return offsets

    @classmethod
    def of_groups(cls, value: Any) -> Offsets:
        """The offsets that a dictionary of cuts by group says, as people write them in an option."""
        if not isinstance(value, dict) or not value:
            raise _malformed(value)
        cuts: dict[str, Cut] = {}
        for group, fields in value.items():
            try:
                cuts[checked_name(group, "a group")] = cut_of_fields(fields)
            except (RangeMalformed, LogFormat, ConfigError) as error:
                raise OffsetsUnusable(f"the offset of group {group!r:.60} cannot be read: {error}") from None
        return cls(cuts)

    def _check_groups(self, groups: Collection[str]) -> None:
        if self.cuts.keys() != set(groups):
            raise OffsetsUnusable(
                f"the offsets are of {_listed(self.cuts)} and the query reads {_listed(groups)}; is it the checkpoint "
                f"of another query? {_LOOK}; give the query the groups it had, or a checkpointLocation of its own"
            )

    def _check_delivery(self, delivery: str) -> None:
        for group, cut in self.cuts.items():
            if delivery_of(cut) != delivery:
                raise OffsetsUnusable(
                    f"the offset of group {group} is one of {delivery_of(cut)} and the query reads {delivery}, whose "
                    f"order is another; {_LOOK}; set delivery to {delivery_of(cut)}, or use another checkpointLocation"
                )


def beginning(service: Service) -> Cut:
    """Before everything that a group ever had, where nothing of it is known yet; in `uu` only a log has a beginning."""
    return OrderCut(0, MemberId(0)) if service is Service.RTO else SourceCut()


def delivery_of(cut: Cut) -> str:
    """The service in whose order a cut is a point."""
    match cut:
        case OrderCut():
            return "rto"
        case SourceCut():
            return "rso"
        case EntryCut():
            return "uu"


def _parsed(content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise _malformed(content) from None


def _malformed(content: Any) -> OffsetsUnusable:
    shown = repr(content[:_SHOWN]) if isinstance(content, str | bytes) else f"a {type(content).__name__}"
    return OffsetsUnusable(
        f"{shown} is not the offsets of an intergroup query; is it the checkpoint of another source? {_LOOK}"
    )


def _listed(groups: Collection[str]) -> str:
    return f"{'group' if len(groups) == 1 else 'groups'} {', '.join(sorted(groups))}"


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return value
