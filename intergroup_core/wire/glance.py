"""A look at how the payloads of a chunk begin, without putting them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.header import HEADER_WORDS
from intergroup_core.wire.labels import MAX_LABEL_BYTES, Label, remembered_label
from intergroup_core.wire.records import (
    COUNT_BYTES,
    LABELLED,
    LAST_LAYOUT,
    LAYOUT_SHIFT,
    LENGTH_BYTES,
    label_in,
    layout_of,
)
from intergroup_core.wire.run import Bytes

_ENOUGH = COUNT_BYTES + LENGTH_BYTES + MAX_LABEL_BYTES
_PLAIN = np.uint64(1 << LAYOUT_SHIFT)


class Labelled(NamedTuple):
    """A message that stages records."""

    seq: int
    timestamp: int
    label: Label


def is_plain(chunk: Chunk) -> bool:
    """Whether all messages of a chunk are mere records; the usual chunk, one message, costs a look at one word."""
    if layout_of(chunk.first_word()):
        return False
    return chunk.count == 1 or not (chunk.further_words() >= _PLAIN).any()


def labels_in(chunk: Chunk) -> Iterator[Labelled]:
    """The labels of those messages of a chunk that stage records."""
    if is_plain(chunk):
        return
    run = chunk.run
    for number, word in enumerate((chunk.first_word(), *chunk.further_words().tolist())):
        layout = layout_of(word)
        if layout > LAST_LAYOUT or not layout & LABELLED:
            continue
        begin = _begin(chunk, number)
        packed = label_in(begin)
        label = remembered_label(packed) if packed else None
        if label is not None:
            end = run.ends[number]
            yield Labelled(run.seq + end, run.timestamp + end, label)


def _begin(chunk: Chunk, number: int) -> Bytes:
    """What a message begins with: its first frame or, where that has no room for a label, all of it."""
    run = chunk.run
    start = run.ends[number - 1] + 1 if number else 0
    first = chunk.head[0].frames[0] if chunk.head and not number else run.frames[start]
    begin: Bytes = np.ascontiguousarray(first[HEADER_WORDS:]).view(np.uint8)
    if len(begin) >= _ENOUGH:
        return begin
    return next(message.payload for at, message in enumerate(chunk.messages()) if at == number)
