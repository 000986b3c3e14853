"""A smaller set of what `make fuzz` does by the million."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import START, B, C, a_control_frame, a_keepalive, a_message
from tests.membership_builders import a_join, a_sponsorship
from tests.property.fuzz_frames import fuzz, main
from tests.property.malformed import FIRST_SEQ, NEXT_TIMESTAMP, Malformed

FRAMES = 20_000
KINDS = Malformed(1).kinds


def test_malformed_frames_raise_nothing_change_nothing_and_are_counted(
    record_property: Callable[[str, object], None],
) -> None:
    outcome = fuzz(FRAMES, seed=1, kinds=KINDS)
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert outcome.frames == outcome.causes().total() == FRAMES
    record_property("dropped by cause", dict(outcome.causes()))
    print(outcome.table())
    expected = {"body", "checksum", "field", "group", "length", "magic", "member", "nested", "type", "version", "view"}
    assert set(outcome.causes()) == expected


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("wrong version", "version"),
        ("wrong magic", "magic"),
        ("wrong group", "group"),
        ("wrong type", "type"),
        ("wrong flags", "field"),
        ("no sender", "field"),
        ("body of noise", "body"),
        ("body of another shape", "body"),
        ("body cut short", "body"),
        ("range that is none", "body"),
        ("number out of bounds", "body"),
        ("field that is none", "body"),
        ("field too many", "body"),
        ("field too few", "body"),
        ("change that says nothing", "body"),
        ("change without a place", "field"),
        ("repair in a repair", "nested"),
        ("control in a repair", "nested"),
        ("cut frame in a repair", "length"),
        ("stranger's data", "view"),
        ("stranger's keep-alive", "view"),
        ("stranger's data in a repair", "view"),
        ("stranger's report", "member"),
        ("stranger's request", "member"),
        ("other view's data", "view"),
        ("other view's keep-alive", "view"),
        ("other view's frame in a repair", "view"),
        ("other view's report", "view"),
        ("other view's request", "view"),
    ],
)
def test_what_is_wrong_is_counted_under_its_own_cause(kind: str, cause: str) -> None:
    outcome = fuzz(200, seed=2, kinds=[kind])
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert set(outcome.causes()) == {cause}


class Genuine(Malformed):
    """Frames that are not malformed at all."""

    def __init__(self, frame: bytes) -> None:
        super().__init__(seed=1)
        self._sound = frame

    def frame(self, kind: str) -> bytes:
        return self._sound


@pytest.mark.parametrize(
    ("member", "frame"),
    [
        ("sender", a_message([b"small"], sender=C, seq=FIRST_SEQ, timestamp=NEXT_TIMESTAMP)[0]),
        ("sender", a_keepalive(C, 2, START + 5_001)),
        ("live sender", a_keepalive(C, 2, START + 5_001)),
        ("live receiver", a_control_frame(a_join(B))),
        ("repairing sender", a_control_frame(a_join(C))),
        ("newcomer", a_control_frame(a_sponsorship())),
    ],
)
def test_a_frame_that_is_believed_is_found(member: str, frame: bytes) -> None:
    outcome = fuzz(10, seed=1, kinds=["noise"], members=[member], malformed=Genuine(frame))
    assert len(outcome.findings) == 1
    assert outcome.findings[0].frame == frame


def test_the_program_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--frames", "40", "--seed", "7"])
    assert "dropped by cause" in capsys.readouterr().out
