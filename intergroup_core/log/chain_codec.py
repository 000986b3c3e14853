"""Descriptions of ranges as lists, for msgpack: canonical, and with a version of their own.

    [version, start, stop, views, gaps, digest of views, whole, [[sender, chain], ...]]

A gap is [views before it, reason], and a chain [first, last, messages, frames, digest], its ends [sender, seq] or
nothing.
"""

from __future__ import annotations

from typing import Any

from intergroup_core.errors import LogFormat
from intergroup_core.ids import MemberId
from intergroup_core.log.chain import Chain, Described, Name
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.cut_codec import MAX64, cut_of_list, is_number, listed_cut, malformed, member, number
from intergroup_core.wire.header import MAX_SEQ

DESCRIBED_VERSION = 1
MAX_TEXT = 1_024
"""Characters of a view's id or of a gap's reason."""


def listed_described(described: Described) -> list[Any]:
    """A description as a list that msgpack takes."""
    return [
        DESCRIBED_VERSION,
        listed_cut(described.start),
        listed_cut(described.stop),
        list(described.views),
        [[before, reason] for before, reason in described.gaps],
        described.views_digest,
        None if described.whole is None else _listed_chain(described.whole),
        [[source, _listed_chain(described.sources[source])] for source in sorted(described.sources)],
    ]


def described_of_list(value: Any) -> Described:
    """The description that a list says; RangeMalformed or LogFormat for anything else."""
    match value:
        case [version, *_] if not is_number(version):
            raise malformed("a description of a range", value)
        case [version, *_] if version != DESCRIBED_VERSION:
            raise LogFormat(
                f"a range is described in version {version}, and this version of intergroup reads version "
                f"{DESCRIBED_VERSION}; read it with the version that wrote it"
            )
        case [_, start, stop, list(views), list(gaps), digest, whole, list(sources)]:
            described = Described(
                start=cut_of_list(start),
                stop=cut_of_list(stop),
                views=tuple(_text(view) for view in views),
                gaps=tuple(_gap(gap, len(views)) for gap in gaps),
                views_digest=number(digest, MAX64, "a digest"),
                whole=None if whole is None else _chain(whole),
                sources=_sources(sources),
            )
        case _:
            raise malformed("a description of a range", value)
    by_source = isinstance(described.start, SourceCut)
    if type(described.start) is not type(described.stop) or by_source != (described.whole is None):
        raise malformed("a description whose parts are of one service", value)
    if not by_source and described.sources:
        raise malformed("a description of one chain", value)
    return described


def _listed_chain(chain: Chain) -> list[Any]:
    ends = [None if end is None else list(end) for end in (chain.first, chain.last)]
    return [*ends, chain.messages, chain.frames, chain.digest]


def _chain(value: Any) -> Chain:
    if not isinstance(value, list) or len(value) != 5:
        raise malformed("a chain", value)
    first, last, messages, frames, digest = value
    return Chain(
        first=_name(first),
        last=_name(last),
        messages=number(messages, MAX64, "a number of messages"),
        frames=number(frames, MAX64, "a number of frames"),
        digest=number(digest, MAX64, "a digest"),
    )


def _name(value: Any) -> Name | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise malformed("the name of a message", value)
    return member(value[0]), number(value[1], MAX_SEQ, "a seq")


def _sources(pairs: list[Any]) -> dict[MemberId, Chain]:
    sources: dict[MemberId, Chain] = {}
    last = -1
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise malformed("a sender and its chain", pair)
        source = member(pair[0])
        if source <= last:
            raise malformed("a sender in its place", source)
        sources[source], last = _chain(pair[1]), source
    return sources


def _gap(value: Any, views: int) -> tuple[int, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise malformed("a gap", value)
    return number(value[0], views, "a number of views before a gap"), _text(value[1])


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise malformed("a short text", value)
    return value
