"""What statements add up to: the last word on each site, whatever the order in which words come together."""

from __future__ import annotations

from itertools import permutations

import pytest

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import Timestamp, timestamp_span
from intergroup_core.transaction.holders import MAX_HOLDERS, Holder, Holders
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.fields import MAX_LEDGER, MAX_TEXT
from intergroup_core.wire.statements import Holding, Restated, Statement, encode_statement
from tests.builders import LAST, START, a_frame
from tests.log_builders import a_chunk, chunk_of

MINUTE = 60
SPAN = timestamp_span(MINUTE * 1_000_000_000)


def stated(statement: Statement, timestamp: int = START + 1) -> Chunk:
    payload = encode_statement(statement)
    octets = payload.slice(0, len(payload)).tobytes()
    size = HEADER_BYTES + (len(octets) + 7 & ~7)
    return chunk_of([a_frame(seq=1, timestamp=timestamp, payload=octets, flags=LAST, size=size)])


def a_word(site: int, said: int, *, holds: bool = True) -> Holder:
    return Holder(site, f"s{site}", holds, Timestamp(said), MINUTE, Timestamp(said))


def test_a_site_counts_from_when_it_says_so_until_it_says_otherwise() -> None:
    ledger = Ledger()
    ledger.deliver(stated(Holding(1, "one", True, MINUTE)))
    assert ledger.holders.at(START + 2) == {1: "one"}
    ledger.deliver(stated(Holding(1, "one", False, MINUTE), START + 5))
    assert ledger.holders.at(START + 6) == {}
    assert ledger.version == 2


def test_data_says_nothing() -> None:
    ledger = Ledger()
    ledger.deliver(a_chunk(b"row"))
    assert ledger.version == 0
    assert ledger.to_bytes() == b""


def test_a_site_that_says_nothing_more_counts_until_it_expires() -> None:
    holders = Holders()
    holders.say(a_word(1, START))
    assert holders.at(START + SPAN) == {1: "s1"}
    assert holders.at(START + SPAN + 1) == {}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_latest_word_counts_in_whatever_order_they_come(order: tuple[int, ...]) -> None:
    words = [a_word(1, START), a_word(1, START + 5, holds=False), a_word(2, START + 3)]
    holders = Holders()
    for each in order:
        holders.say(words[each])
    assert holders.at(START + 10) == {2: "s2"}


def test_an_old_word_does_not_bring_back_a_site_that_has_ceased() -> None:
    here, there = Ledger(), Ledger()
    there.deliver(stated(Holding(1, "one", True, MINUTE)))
    old = there.to_bytes()
    here.learn(old)
    here.deliver(stated(Holding(1, "one", False, MINUTE), START + 5))
    here.deliver(stated(Restated(old), START + 9))
    assert here.holders.at(START + 10) == {}


def test_who_is_handed_a_ledger_knows_the_same() -> None:
    ledger, newcomer = Ledger(), Ledger()
    ledger.deliver(stated(Holding(1, "one", True, MINUTE)))
    ledger.deliver(stated(Holding(2, "two", False, MINUTE), START + 4))
    newcomer.learn(ledger.to_bytes())
    assert newcomer.to_bytes() == ledger.to_bytes() != b""


@pytest.mark.parametrize("garbage", [b"\xc1", b"\x92\x02\x90", b"\x92\x01\x91\x91\x01", b"\x01"])
def test_what_is_no_ledger_changes_nothing(garbage: bytes) -> None:
    ledger = Ledger()
    ledger.learn(garbage)
    assert ledger.version == 0


def test_the_largest_ledger_fits_what_a_sponsor_says() -> None:
    ledger = Ledger()
    for site in range(MAX_HOLDERS + 5):
        ledger.holders.say(
            Holder((1 << 64) - 1 - site, "n" * MAX_TEXT, True, Timestamp(START), MINUTE, Timestamp(START))
        )
    assert len(list(ledger.holders)) == MAX_HOLDERS
    assert len(ledger.to_bytes()) <= MAX_LEDGER


def test_what_has_expired_makes_room() -> None:
    holders = Holders()
    for site in range(MAX_HOLDERS):
        holders.say(a_word(site, START))
    assert not holders.say(a_word(9_999, START + 1))
    assert holders.say(a_word(9_999, START + SPAN + 1))
    assert holders.at(START + SPAN + 2) == {9_999: "s9999"}


def test_a_site_does_not_count_for_what_came_before_it() -> None:
    holders = Holders()
    holders.say(a_word(1, START + 5))
    assert holders.at(START + 4) == {}
    holders.say(a_word(1, START + 9)._replace(since=Timestamp(START + 5)))
    assert holders.at(START + 5) == {1: "s1"}
    holders.say(a_word(1, START + 10, holds=False))
    holders.say(a_word(1, START + 20))
    assert holders.at(START + 15) == {}


def test_a_word_from_the_future_is_not_believed() -> None:
    here, there = Ledger(), Ledger()
    there.deliver(stated(Holding(2, "two", True, MINUTE), START + 1_000))
    here.deliver(stated(Restated(there.to_bytes()), START + 9))
    here.begin(there.to_bytes(), START + 9)
    assert here.to_bytes() == b""


def test_who_is_told_by_a_sponsor_knows_just_that_and_states_what_it_remembers_besides() -> None:
    here, sponsor = Ledger(), Ledger()
    here.deliver(stated(Holding(1, "one", True, MINUTE)))
    sponsor.deliver(stated(Holding(2, "two", True, MINUTE), START + 4))
    here.begin(sponsor.to_bytes(), START + 9)
    assert here.to_bytes() == sponsor.to_bytes()
    assert here.unstated
    restated = stated(Restated(here.unstated), START + 10)
    for ledger in (here, sponsor):
        ledger.deliver(restated)
        assert ledger.holders.at(START + 11) == {1: "one", 2: "two"}
    assert not here.unstated


def test_a_sponsor_that_knows_all_leaves_nothing_to_state() -> None:
    here, sponsor = Ledger(), Ledger()
    here.deliver(stated(Holding(1, "one", True, MINUTE)))
    sponsor.learn(here.to_bytes())
    sponsor.deliver(stated(Holding(2, "two", True, MINUTE), START + 4))
    here.begin(sponsor.to_bytes(), START + 9)
    assert not here.unstated


def test_since_when_a_site_holds_the_log_is_what_it_says_itself() -> None:
    knowing, late = Ledger(), Ledger()
    knowing.deliver(stated(Holding(1, "one", True, MINUTE)))
    for ledger in (knowing, late):
        ledger.deliver(stated(Holding(1, "one", True, MINUTE), START + 5))
        assert ledger.holders.at(START + 4) == {}
        ledger.deliver(stated(Holding(1, "one", True, MINUTE, START + 1), START + 9))
        assert ledger.holders.at(START + 4) == {1: "one"}
    assert knowing.to_bytes() == late.to_bytes()
