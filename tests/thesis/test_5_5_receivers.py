"""T5.5: what processes outside of the sender group do while the senders repair."""

from __future__ import annotations

from intergroup_core.effects import Gap, Install
from intergroup_core.ids import MemberId, Service
from intergroup_core.wire.membership import Join, MembershipChange, ReadyToCommit, RecoveryInfo, ViewRequest
from intergroup_core.wire.run import Run
from tests.builders import (
    START,
    A,
    B,
    C,
    R,
    S,
    a_control_frame,
    a_keepalive,
    a_message,
    after,
    delivered,
    hears,
    millis,
    said,
    ticked,
)
from tests.membership_builders import a_cut, a_join, a_live_receiver, a_membership_change, an_entry
from tests.thesis.wired import Node, Wired

NEXT = a_membership_change(B, entries=[an_entry(A, 2), an_entry(B, 1)], cuts=[a_cut({A: 1, B: 0, C: 0})])


def a_group_with_receivers() -> tuple[Wired, list[Node], list[Node]]:
    group = Wired(membership={"silence_ms": 600_000.0})
    senders = group.senders(A, B, C)
    receivers = [group.join(R), group.join(S, service=Service.RSO)]
    group.run_until(lambda: all(node.state == "receiver" for node in receivers))
    group.run(500)
    group.said.clear()
    return group, senders, receivers


def installed(effects: list[object]) -> list[Install]:
    return [effect for effect in effects if isinstance(effect, Install)]


def test_a_receiver_says_nothing_in_the_exchange() -> None:
    group, (_, _, c), (r, s) = a_group_with_receivers()
    group.crash(c)
    group.run(1_500)
    for kind in (Join, RecoveryInfo, ReadyToCommit, MembershipChange):
        assert group.heard(kind, r.id) == group.heard(kind, s.id) == []
    assert r.members == s.members == (A, B)


def test_delivery_halts_when_a_sender_starts_the_repair() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, a_control_frame(a_join(B)), now=after(millis(1)))
    frames = [*a_message(sender=A, timestamp=START + 5), *(a_keepalive(each, 0, START + 9) for each in (B, C))]
    assert delivered(hears(receiver, *frames, now=after(millis(2)))) == []
    assert receiver.state == "receiver wait"


def test_the_change_that_names_its_view_ends_the_wait() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, *a_message(sender=A, timestamp=START + 5), a_control_frame(a_join(B)), now=after(millis(1)))
    effects = hears(receiver, a_control_frame(NEXT), now=after(millis(2)))
    assert delivered(effects) == [(A, 1)]
    (install,) = installed(effects)  # type: ignore[arg-type]
    assert (install.view.id, install.view.members) == (NEXT.view, (A, B))
    assert effects.index(install) > 0, "what was left of the old view comes first"
    assert receiver.state == "receiver"


def test_what_is_missing_below_the_cut_is_recovered_first() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, a_control_frame(NEXT), now=after(millis(1)))
    assert receiver.state == "receiver recovery"
    effects = hears(receiver, *a_message(sender=A, timestamp=START + 5), now=after(millis(9)))
    assert delivered(effects) == [(A, 1)]
    assert receiver.state == "receiver"


def test_what_lies_beyond_the_cut_is_not_delivered() -> None:
    receiver = a_live_receiver(R)
    frames = [*a_message(sender=A, timestamp=START + 5), *a_message(sender=C, seq=1, timestamp=START + 6)]
    effects = hears(receiver, *frames, a_control_frame(NEXT), now=after(millis(1)))
    assert delivered(effects) == [(A, 1)]
    assert [install.view.members for install in installed(effects)] == [(A, B)]  # type: ignore[arg-type]


def test_a_receiver_that_delivered_beyond_the_cut_tells_its_application_and_starts_anew() -> None:
    receiver = a_live_receiver(R)
    frames = [*a_message(sender=C, seq=1, timestamp=START + 6), *(a_keepalive(each, 0, START + 9) for each in (A, B))]
    assert delivered(hears(receiver, *frames, now=after(millis(1)))) == [(C, 1)]
    effects = hears(receiver, a_control_frame(NEXT), now=after(millis(2)))
    (gap,) = [effect for effect in effects if isinstance(effect, Gap)]
    assert gap.incarnation == receiver.me != R
    assert receiver.state == "bootstrap"


def test_a_receiver_whose_recovery_fails_starts_anew() -> None:
    receiver = a_live_receiver(R)
    effects = hears(receiver, a_control_frame(NEXT), now=after(millis(1)))
    for at in range(100, 15_000, 100):
        # The senders are there, only the frame is not to be had.
        now = after(millis(at))
        effects += receiver.tick(now)
        if receiver.state == "bootstrap":
            break
    assert [effect for effect in effects if isinstance(effect, Gap)]
    assert receiver.state == "bootstrap"


def test_a_receiver_that_waits_asks_for_the_change() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, a_control_frame(a_join(B)), now=after(millis(1)))
    asked = said(ticked(receiver, after(millis(1_000))), ViewRequest)
    assert asked
    assert {request.epoch for request in asked} == {receiver.view.id} if receiver.view else False


def test_a_change_that_does_not_name_its_view_does_not_end_the_wait() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, a_control_frame(a_join(B)), now=after(millis(1)))
    elsewhere = a_membership_change(B, entries=[an_entry(B)], cuts=[a_cut({B: 1}, epoch=NEXT.view)])
    hears(receiver, a_control_frame(elsewhere), now=after(millis(2)))
    assert receiver.state == "receiver wait"


def test_frames_of_the_next_view_wait_for_its_change() -> None:
    """M0."""
    receiver = a_live_receiver(R)
    early = a_message([b"early"], sender=B, seq=1, timestamp=NEXT.view.start + 5, view_tag=NEXT.view.tag)
    effects = hears(receiver, *early, now=after(millis(1)))
    assert delivered(effects) == []
    assert receiver.counters.frames_held == 1
    assert said(effects, ViewRequest)[0].tag == NEXT.view.tag
    effects = hears(receiver, *a_message(sender=A, timestamp=START + 5), a_control_frame(NEXT), now=after(millis(2)))
    effects += hears(receiver, a_keepalive(A, 1, NEXT.view.start + 9, view_tag=NEXT.view.tag), now=after(millis(3)))
    assert delivered(effects) == [(A, 1), (B, 1)]


def test_senders_and_receivers_have_the_same_streams() -> None:
    group, (a, b, c), (r, s) = a_group_with_receivers()
    for number in range(20):
        for node in (a, b, c):
            group.send(node, f"{node.id & 0xF:x}{number}")
        group.run(3)
    group.crash(c)
    group.run(2_000)
    group.send(a, "after")
    group.run(300)
    assert a.stream[-30:] == b.stream[-30:] == r.stream[-30:]
    assert r.stream[-2:] == ["a/b", "after"]
    assert (
        sorted(record for record in a.stream if record != "after")[-5:]
        == sorted(record for record in r.stream if record != "after")[-5:]
    )
    assert set(s.records) == set(r.records)


def test_a_receiver_follows_partition_and_merge() -> None:
    group, (a, b, c), (r, s) = a_group_with_receivers()
    group.part([a, b, r], [c, s])
    group.run(2_000)
    assert (r.members, s.members) == ((A, B), (C,))
    group.heal()
    group.run_until(lambda: r.members == s.members == a.members == (A, B, C))
    assert r.had(Gap) == s.had(Gap) == []
    assert len(r.installs[-1].branches) == len(s.installs[-1].branches) == 1
    group.send(b, "both")
    group.run(300)
    assert r.records[-1] == s.records[-1] == b"both"


def test_a_receiver_whose_senders_all_failed_finds_the_next_sender() -> None:
    group = Wired()
    (a,) = group.senders(A)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.crash(a)
    group.run(2_000)
    assert receiver.state == "receiver"
    other = group.join(B, sender=True)
    group.run(8_000)
    assert other.state == "sender"
    group.send(other, "new")
    group.run(500)
    assert receiver.records[-1:] == [b"new"]


def test_repairs_for_receivers_of_the_old_view_are_served_after_the_change() -> None:
    group, (a, b, c), (r, _) = a_group_with_receivers()
    group.lets = lambda source, target, message: not (target == r.id and isinstance(message, Run) and source == a.id)
    group.send(a, "missed by r")
    group.run(3)
    group.crash(c)
    group.run_until(lambda: a.members == b.members == (A, B))
    group.heal()
    group.run(1_000)
    assert r.stream[-2:] == ["missed by r", "a/b"]
    assert MemberId(R) == r.endpoint.me, "no gap was needed"
