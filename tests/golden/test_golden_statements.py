"""Bytes of statements and of ledgers, kept for ever: they are in logs, and members of other versions read them.

Written anew, after a change of the format, by:  python -m tests.golden.test_golden_statements
"""

from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import (
    Abandoned,
    Carried,
    Decided,
    Established,
    Gathering,
    Holding,
    Proposed,
    Restated,
    Statement,
    decode_statement,
    encode_statement,
)
from tests.unit.transaction.stories import BERT, a_label
from tests.unit.transaction.test_transactions import a_story, decide, verdict_on

FILES = Path(__file__).parent / "statements"
SENDER, SITE, AT = MemberId(0xFEDC_BA98_7654_3210), (1 << 64) - 1, Timestamp(0x0777_8888_9999_AAAA)
STAGED = Staged(0x1122_3344_5566_7788, SENDER, 5, 1 << 40, AT, AT + 9, 3, 1_000)

STATEMENTS: dict[str, Statement] = {
    "holding": Holding(SITE, "Bücher", True, 604_800),
    "holding-again": Holding(SITE, "Bücher", True, 604_800, AT),
    "ceasing": Holding(7, "", False, 60),
    "restated": Restated(b"\x92\x01\x90"),
    "gathering": Gathering((1 << 63) - 1),
    "established": Established(9, AT, (1, SITE)),
    "proposed": Proposed(9, "Abfrage", "3f0c", 1 << 40, True, 3_600, (STAGED,)),
    "proposed-nothing": Proposed(1, "q", "r", 0, False, 1, ()),
    "decided": Decided(9, key_of("Abfrage"), 1 << 40, SENDER, 1 << 40, AT, (1, SITE)),
    "abandoned": Abandoned("Abfrage", "3f0c", 12),
    "carried": Carried(SENDER, 1 << 40, Proposed(9, "Abfrage", "3f0c", 1 << 40, True, 3_600, (STAGED,))),
}


def octets(statement: Statement) -> bytes:
    payload = encode_statement(statement)
    return payload.slice(0, len(payload)).tobytes()


def a_ledger() -> Ledger:
    """Of a part that counts: one transaction visible, one proposed, one open, one that does not last."""
    story = a_story()
    verdict_on(story, story.stage(a_label()))
    decide(story)
    once = story.stage(a_label(0, app="once"), BERT)
    story.say(Proposed(1, "once", "run", 0, False, 3_600, (once,)))
    decide(story, app="once")
    verdict_on(story, story.stage(a_label(2, attempt=2)), version=2)
    story.stage(a_label(3, attempt=3, app="other"), BERT)
    return story.ledgers[0]


def stored(name: str) -> bytes:
    return bytes.fromhex((FILES / f"{name}.hex").read_text())


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_has_the_bytes_it_always_had(name: str) -> None:
    assert octets(STATEMENTS[name]).hex() == stored(name).hex()


@pytest.mark.parametrize("name", STATEMENTS)
def test_those_bytes_mean_what_they_always_meant(name: str) -> None:
    assert decode_statement(stored(name)) == STATEMENTS[name]


def test_a_ledger_has_the_bytes_it_always_had_and_they_are_read() -> None:
    ledger = a_ledger()
    assert ledger.to_bytes().hex() == stored("ledger").hex()
    again = Ledger()
    again.begin(stored("ledger"), Timestamp((1 << 63) - 1))
    assert again.to_bytes() == ledger.to_bytes()


def test_every_file_is_tested() -> None:
    assert {path.stem for path in FILES.glob("*.hex")} == {*STATEMENTS, "ledger"}


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for name, statement in STATEMENTS.items():
        (FILES / f"{name}.hex").write_text(octets(statement).hex() + "\n")
    (FILES / "ledger.hex").write_text(a_ledger().to_bytes().hex() + "\n")
