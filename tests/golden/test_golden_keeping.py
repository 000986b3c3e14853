"""Bytes of what keepers of logs say to each other, kept for ever: a change here is a new version of the wire format.

Written anew, after such a change, by:  python -m tests.golden.test_golden_keeping
"""

from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.ids import MemberId, SiteId, Timestamp
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.keeping import (
    KEEPERS_TAG,
    KEEPING_TYPES,
    HoldingAnswer,
    HoldingQuery,
    KeeperAnswer,
    KeeperCommit,
    KeeperQuery,
    KeepingMessage,
    decode_keeping,
    encode_keeping,
)
from tests.builders import parsed

FRAMES = Path(__file__).parent / "keeping"
SITE, GROUP = SiteId(0x0123_4567_89AB_CDEF), 0xA1B2_C3D4_E5F6_0718

MESSAGES: dict[str, KeepingMessage] = {
    "query": KeeperQuery(site=SITE, serial=0x1122_3344_5566_7788 >> 1, group=GROUP),
    "answer": KeeperAnswer(
        site=SITE, serial=7, group=GROUP, name="Bücher", host="10.1.2.3", port=54_321, token=bytes(range(16))
    ),
    "commit": KeeperCommit(
        site=SITE, group=GROUP, service="rto", name="audit", cut=b"\x95\x01", stamp=Timestamp(0x0777_8888_9999_AAAA)
    ),
    "holding-query": HoldingQuery(
        site=SITE,
        serial=9,
        group=GROUP,
        asked=(1, (1 << 64) - 1),
        spans=((MemberId(0xFEDC_BA98_7654_3210), 5, 1 << 40),),
        waits=True,
    ),
    "holding-answer": HoldingAnswer(
        site=SITE, serial=9, group=GROUP, holder=(1 << 64) - 1, spans=((MemberId(0xFEDC_BA98_7654_3210), 7, 8),)
    ),
    "end-of-subscription": KeeperCommit(
        site=SITE, group=GROUP, service="rso", name="audit", cut=b"", stamp=Timestamp(1)
    ),
}


def frame(message: KeepingMessage) -> bytes:
    kind, body = encode_keeping(message)
    return FrameMaker(KEEPERS_TAG, MemberId(message.site), 0, 2_048).single(kind, 0, 0, body)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_has_the_bytes_it_always_had(name: str) -> None:
    assert frame(MESSAGES[name]).hex() == (FRAMES / f"{name}.hex").read_text().strip()


@pytest.mark.parametrize("name", MESSAGES)
def test_those_bytes_mean_what_they_always_meant(name: str) -> None:
    stored = bytes.fromhex((FRAMES / f"{name}.hex").read_text())
    assert parsed(stored, group=KEEPERS_TAG) == [MESSAGES[name]]


def test_every_kind_has_bytes() -> None:
    assert {encode_keeping(message)[0] for message in MESSAGES.values()} == KEEPING_TYPES


@pytest.mark.parametrize("kind", sorted(KEEPING_TYPES))
@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x90", b"\x92\x01\x02\x03", b"\x96" + b"\xa0" * 6, b"\x95" + b"\xff" * 5]
)
def test_a_body_that_does_not_fit_is_no_message(kind: int, body: bytes) -> None:

    assert decode_keeping(FrameType(kind), SITE, body) is None


if __name__ == "__main__":
    FRAMES.mkdir(exist_ok=True)
    for name, message in MESSAGES.items():
        (FRAMES / f"{name}.hex").write_text(frame(message).hex() + "\n")
