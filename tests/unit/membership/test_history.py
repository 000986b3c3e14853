from __future__ import annotations

from intergroup_core.ids import ViewId
from intergroup_core.membership.history import History
from intergroup_core.wire.membership import MembershipChange
from tests.builders import START, VIEW, A, B, R
from tests.membership_builders import a_cut, a_membership_change, a_view_id


def view(number: int) -> ViewId:
    return a_view_id(START + 1_000 * number, A, number)


def change(number: int, *before: ViewId, attempt: int = 1) -> MembershipChange:
    return a_membership_change(view=view(number), cuts=[a_cut(epoch=epoch) for epoch in before], attempt=attempt)


def test_only_epochs_that_were_entered_are_known() -> None:
    history = History()
    assert not history.knows(VIEW.id.tag)
    history.entered(VIEW.id, None)
    assert history.knows(VIEW.id.tag)
    assert history.has(VIEW.id)
    assert not history.has(view(1))
    assert not history.has(None)


def test_epochs_that_met_in_a_merge_are_known_too() -> None:
    history = History()
    history.entered(view(3), change(3, view(1), view(2)))
    assert all(history.has(view(number)) for number in (1, 2, 3))


def test_the_same_tag_is_not_the_same_epoch() -> None:
    history = History()
    history.entered(VIEW.id, None)
    assert not history.has(a_view_id(VIEW.id.start, B, 1))


def test_the_change_that_ended_an_epoch_can_be_said_again() -> None:
    history = History()
    history.entered(view(1), None)
    history.entered(view(2), change(2, view(1)))
    found = history.following(view(1), 0, R)
    assert found is not None
    assert (found.view, found.member, found.again) == (view(2), R, True)


def test_the_change_that_began_a_view_is_found_by_its_tag() -> None:
    history = History()
    history.entered(view(2), change(2, view(1)))
    found = history.following(None, view(2).tag, R)
    assert found is not None
    assert found.view == view(2)


def test_the_end_of_ones_own_epoch_comes_before_what_a_tag_says() -> None:
    history = History()
    history.entered(view(2), change(2, view(1)))
    history.entered(view(3), change(3, view(2)))
    found = history.following(view(1), view(3).tag, R)
    assert found is not None
    assert found.view == view(2), "views are followed one by one"


def test_nothing_follows_the_present_epoch() -> None:
    history = History()
    history.entered(view(2), change(2, view(1)))
    assert history.following(view(2), 0, R) is None


def test_the_change_in_which_an_attempt_ended_is_found() -> None:
    history = History()
    history.entered(view(2), change(2, view(1), attempt=77))
    found = history.of_attempt(77, R)
    assert found is not None
    assert (found.view, found.again) == (view(2), True)
    assert history.of_attempt(78, R) is None


def test_the_past_has_a_bound() -> None:
    history = History()
    for number in range(1, History.MAX_EPOCHS + 10):
        history.entered(view(number), change(number))
    assert not history.has(view(1))
    assert history.has(view(History.MAX_EPOCHS))
    assert history.following(None, view(1).tag, R) is None
    assert history.following(None, view(History.MAX_EPOCHS).tag, R) is not None


def test_an_epoch_met_again_is_remembered_as_new() -> None:
    history = History()
    history.entered(VIEW.id, None)
    for number in range(1, History.MAX_EPOCHS):
        history.entered(view(number), None)
    history.entered(view(99), change(99, VIEW.id))
    history.entered(view(100), None)
    assert history.has(VIEW.id)


def test_what_ended_an_epoch_is_found_by_that_alone() -> None:
    history = History()
    history.entered(view(2), change(2, view(1)))
    found = history.ending(view(1), R)
    assert found is not None
    assert (found.view, found.member, found.again) == (view(2), R, True)
    assert history.ending(view(2), R) is None
