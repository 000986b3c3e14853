"""What a group's ordered statements add up to: the same at all who delivered the same; newcomers are handed it."""

from __future__ import annotations

import msgpack

from intergroup_core.ids import MAX_TIMESTAMP
from intergroup_core.transaction.holders import Holder, Holders
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.fields import BadBody, array, integer, site_key, text, timestamp, truth, unpacked
from intergroup_core.wire.statements import MAX_SECONDS, Holding, Restated, statements_in

VERSION = 1


class Ledger:
    """One member's; `version` grows with every change."""

    def __init__(self) -> None:
        self.holders = Holders()
        self.version = 0
        self.outdated = False
        """Whether the member was left behind, and nobody has told it yet what was stated where it goes on."""

    def deliver(self, chunk: Chunk) -> None:
        """Messages at their place in the order."""
        for message, statement in statements_in(chunk):
            match statement:
                case Holding(site=site, name=name, holds=holds, seconds=seconds):
                    self._say(Holder(site, name, holds, message.timestamp, seconds, message.timestamp))
                case Restated(ledger=stated):
                    self.learn(stated, message.timestamp)

    def learn(self, stated: bytes, upto: int = MAX_TIMESTAMP) -> None:
        """What somebody else knows up to a timestamp; nothing where the bytes are no ledger."""
        for word in _words(stated):
            if word.said <= upto:
                self._say(word)

    def begin(self, stated: bytes, upto: int) -> None:
        """What a sponsor knows: a member that was left behind goes on with that, on another chain of views."""
        if self.outdated:
            self.outdated = False
            self.holders = Holders()
            self.version += 1
        self.learn(stated, upto)

    def _say(self, word: Holder) -> None:
        if self.holders.say(word):
            self.version += 1

    def to_bytes(self) -> bytes:
        """Empty where there is nothing to know."""
        words = [list(word) for word in self.holders]
        packed: bytes = msgpack.packb([VERSION, words]) if words else b""
        return packed


def _words(stated: bytes) -> list[Holder]:
    if not stated:
        return []
    try:
        version, words = array(unpacked(stated), 2)
        if version != VERSION:
            return []
        return [_word(*array(word, 6)) for word in array(words)]
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return []


def _word(site: object, name: object, holds: object, said: object, seconds: object, since: object) -> Holder:
    stamp, begin = timestamp(said), timestamp(since)
    return Holder(site_key(site), text(name), truth(holds), stamp, integer(seconds, MAX_SECONDS), begin)
