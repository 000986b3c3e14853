"""Up to where something is fetched from another site."""

from __future__ import annotations

from intergroup_core.agent.history import _ends
from intergroup_core.log.cut import SourceCut
from tests.builders import START, A, B
from tests.log_builders import an_install

VIEW = an_install(A, B).view.id
LATER = an_install(A, B, start=START + 100).view.id


def test_what_is_missing_is_fetched_up_to_where_the_present_log_begins() -> None:
    cut, begin = SourceCut({A: 3}, VIEW), SourceCut({A: 9, B: 2}, VIEW)
    assert _ends(cut, begin, SourceCut({A: 20, B: 2}, VIEW)) == [begin]


def test_behind_a_cut_in_the_present_log_everything_is_fetched() -> None:
    """It is not held there because a gap skipped it, be the view another one by now or the same."""
    begin, head = SourceCut({A: 1}, VIEW), SourceCut({A: 20, B: 2}, LATER)
    for view in (VIEW, LATER):
        assert _ends(SourceCut({A: 3, B: 1}, view), begin, head) == [head]
