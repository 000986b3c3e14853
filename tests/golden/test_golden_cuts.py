"""Cuts and descriptions of ranges, kept for ever: a cut is a Spark offset, and lies in checkpoints for years."""

from __future__ import annotations

import json
from pathlib import Path

import msgpack
import pytest

from intergroup_core.ids import MemberId, Timestamp, ViewId
from intergroup_core.log.chain import Chain, Described
from intergroup_core.log.chain_codec import described_of_list, listed_described
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import cut_of_list, cut_of_text, cut_text, listed_cut

FILES = Path(__file__).parent / "cuts"
ANNA, BERT = MemberId(0x0123_4567_89AB_CDEF), MemberId(0xFEDC_BA98_7654_3210)
TIMESTAMP = 0x0777_8888_9999_AAAA
VIEW = ViewId(Timestamp(TIMESTAMP), ANNA, 3)
CUTS: dict[str, Cut] = {
    "rto": OrderCut(TIMESTAMP + 7, BERT, VIEW),
    "rto-without-view": OrderCut(TIMESTAMP + 7, BERT),
    "rso": SourceCut({BERT: 1 << 40, ANNA: 9}, VIEW),
    "rso-at-the-beginning": SourceCut(),
    "uu": EntryCut(0x1122_3344_5566_7788, 70_000),
}
CHAIN = Chain(first=(ANNA, 3), last=(BERT, 8), messages=5, frames=9, digest=(1 << 64) - 1)
DESCRIBED: dict[str, Described] = {
    "described-rto": Described(
        start=OrderCut(TIMESTAMP - 1, ANNA),
        stop=CUTS["rto"],
        views=(str(VIEW),),
        gaps=((1, "behind the others"),),
        views_digest=77,
        whole=CHAIN,
    ),
    "described-rso": Described(
        start=SourceCut(), stop=CUTS["rso"], sources={BERT: Chain(), ANNA: CHAIN}, views_digest=1 << 63
    ),
}


def on_file(name: str) -> str:
    return (FILES / name).read_text().strip()


def test_everything_on_file_is_tried() -> None:
    names = {f"{name}.json" for name in CUTS} | {f"{name}.hex" for name in (*CUTS, *DESCRIBED)}
    assert {path.name for path in FILES.iterdir()} == names


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_is_what_is_on_file(name: str) -> None:
    assert cut_text(CUTS[name]) == on_file(f"{name}.json")
    assert cut_of_text(on_file(f"{name}.json")) == CUTS[name]
    # Spark writes an offset in its own way: it is the content that counts.
    assert cut_of_text(json.dumps(json.loads(on_file(f"{name}.json")), indent=2)) == CUTS[name]
    assert msgpack.packb(listed_cut(CUTS[name])).hex(" ", 8) == on_file(f"{name}.hex")
    assert cut_of_list(msgpack.unpackb(bytes.fromhex(on_file(f"{name}.hex")))) == CUTS[name]


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_description_is_what_is_on_file(name: str) -> None:
    assert msgpack.packb(listed_described(DESCRIBED[name])).hex(" ", 8) == on_file(f"{name}.hex")
    assert described_of_list(msgpack.unpackb(bytes.fromhex(on_file(f"{name}.hex")))) == DESCRIBED[name]
