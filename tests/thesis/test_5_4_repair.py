"""T5.4: the membership repair algorithm, on members that are wired together."""

from __future__ import annotations

from itertools import pairwise

import pytest

from intergroup_core.effects import Departure, Install, Persist
from intergroup_core.errors import NoQuorum
from intergroup_core.ids import MemberId
from intergroup_core.wire.membership import (
    FailureBlock,
    Join,
    MembershipChange,
    ReadyToCommit,
    RecoveryInfo,
    ViewRequest,
)
from intergroup_core.wire.messages import KeepAlive, RepairRequest
from intergroup_core.wire.parse import Parsed
from intergroup_core.wire.run import Run
from tests.builders import A, B, C
from tests.thesis.wired import Node, Wired

D = MemberId(0x0D)


def is_data(message: Parsed, source: MemberId) -> bool:
    return isinstance(message, Run) and message.source == source and not message.change


def a_group(*members: int, **sections: dict[str, float]) -> tuple[Wired, list[Node]]:
    """Senders of one view, after which nobody falls silent for lack of data."""
    group = Wired(membership={"silence_ms": 600_000.0} | sections.pop("membership", {}), **sections)
    nodes = group.senders(*members)
    group.run(500)
    group.said.clear()
    return group, nodes


def views_of(node: Node) -> list[str]:
    return [str(install.view.id) for install in node.installs]


# The way through


def test_the_phases_follow_each_other() -> None:
    group, (_, b, c) = a_group(A, B, C)
    b.endpoint.counters.transitions.clear()
    group.crash(c)
    group.run(1_500)
    steps = [step.split(":")[0] for step in b.transitions]
    assert steps[:2] == ["sender>consensus", "consensus>gather cut"]
    assert steps[-1] == "wait for change>sender"
    assert all(later.startswith(earlier.split(">")[1]) for earlier, later in pairwise(steps))


def test_survivors_agree_on_the_next_view() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.crash(c)
    group.run(1_500)
    assert a.endpoint.view == b.endpoint.view
    assert a.members == (A, B)
    assert a.installs[-1].departed == b.installs[-1].departed == (Departure(C, f"m{C:x}", "failed"),)
    assert a.installs[-1].transitional == (A, B)


def test_the_process_with_the_lowest_id_leads_and_names_the_view() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.crash(a)
    group.run(1_500)
    (change,) = {change.view for change in group.heard(MembershipChange)}
    assert change.leader == B
    assert b.members == c.members == (B, C)


def test_a_leader_waits_for_all_to_be_ready() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.lets = lambda source, target, message: not (isinstance(message, ReadyToCommit) and source == B)
    group.crash(c)
    group.run(1_500)
    assert a.state == "gather ready"
    assert group.heard(MembershipChange) == []
    group.heal()
    group.run(500)
    assert a.members == b.members == (A, B)


def test_between_the_first_suspicion_and_the_view_nothing_is_delivered_or_stamped() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.lets = lambda source, target, message: not isinstance(message, ReadyToCommit)
    group.crash(c)
    group.run_until(lambda: a.state != "sender")
    before = len(a.records)
    group.said.clear()
    group.send(a, "later")
    group.run(100)
    assert len(a.records) == before
    assert group.heard(Run) == []
    assert group.heard(KeepAlive) == []
    group.heal()
    group.run(500)
    assert a.stream[-2:] == b.stream[-2:] == ["a/b", "later"]


def test_a_view_starts_above_everything_delivered_before_it() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.send(a, "one")
    group.run(20)
    group.crash(c)
    group.run(1_500)
    stamps = [m.timestamp for e in b.effects if hasattr(e, "chunk") for m in e.chunk.messages()]
    assert b.endpoint.view is not None
    assert max(stamps) < b.endpoint.view.id.start


# Recovery


def test_what_one_survivor_has_of_a_failed_sender_all_deliver() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.lets = lambda source, target, message: not (target == B and is_data(message, c.id) and source == C)
    group.send(c, "only a has it")
    group.run(3)
    group.crash(c)
    group.run(2_000)
    assert a.stream[-2:] == b.stream[-2:] == ["only a has it", "a/b"]
    assert group.heard(RepairRequest, MemberId(B))


def test_what_no_survivor_has_is_not_waited_for() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.lets = lambda source, target, message: not is_data(message, c.id)
    group.send(c, "nobody has it")
    group.run(30)
    group.crash(c)
    group.run(2_000)
    assert a.stream[-1] == b.stream[-1] == "a/b"
    assert b"nobody has it" not in a.records + b.records


def test_a_message_that_depends_on_a_lost_one_is_discarded_by_all() -> None:
    """M4: S delivered F's m and sent m'; R got only m'; F and S crash."""
    group, (r, s, f) = a_group(A, B, C)
    group.lets = lambda source, target, message: (
        not (target == r.id and isinstance(message, Run) and message.source == f.id)
    )
    group.send(f, "m")
    group.run_until(lambda: b"m" in s.records or s.state != "sender", most_ms=600)
    group.send(s, "m'")
    group.run(5)
    group.crash(f)
    group.crash(s)
    group.heal()
    group.run(3_000)
    assert r.members == (r.id,)
    assert b"m'" not in r.records


def test_a_failed_senders_message_in_fragments_is_kept_as_a_whole_or_not_at_all() -> None:
    group, (a, b, c) = a_group(A, B, C)
    big = "x" * 2_000
    group.lets = lambda source, target, message: not (isinstance(message, Run) and message.ends)
    group.send(c, big)
    group.run(5)
    assert a.endpoint.counters.frames_received > 5, "all but the last fragment"
    group.crash(c)
    group.run(2_000)
    assert a.members == b.members == (A, B)
    assert big.encode() not in a.records


def test_all_messages_of_survivors_are_delivered_before_the_view() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.crash(c)
    group.run(300)
    group.send(a, "of a")
    group.send(b, "of b")
    group.run(2_000)
    assert sorted(a.stream[-3:-1]) == ["of a", "of b"]
    assert a.stream[-3:] == b.stream[-3:]
    assert a.stream[-1] == "a/b"


# Going back


def test_a_failure_during_the_repair_starts_it_again() -> None:
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.lets = lambda source, target, message: not isinstance(message, ReadyToCommit)
    group.crash(c)
    group.run_until(lambda: a.state == "gather ready")
    group.crash(d)
    group.heal()
    group.lets = lambda source, target, message: not (isinstance(message, MembershipChange))
    group.run(3_000)
    group.heal()
    group.run(1_000)
    assert a.members == b.members
    assert C not in a.members
    assert sum(a.endpoint.counters.restarts.values()) >= 1 or len(views_of(a)) >= 2


def test_the_leaders_failure_starts_it_again() -> None:
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.lets = lambda source, target, message: not isinstance(message, MembershipChange)
    group.crash(c)
    group.run_until(lambda: b.state == "wait for change")
    group.crash(a)
    group.heal()
    group.run(3_000)
    assert b.members == d.members == (B, D)


def test_a_change_that_reached_some_is_learned_by_the_others() -> None:
    """M12: the leader dies after its change reached one of two."""
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.lets = lambda source, target, message: not (isinstance(message, MembershipChange) and target == d.id)
    group.crash(c)
    group.run_until(lambda: b.state == "sender" and C not in b.members)
    group.crash(a)
    assert d.state == "wait for change"
    group.heal()
    group.run(4_000)
    learned = [install.view.id for install in d.installs]
    assert b.members == d.members == (B, D)
    assert [install.view.id for install in b.installs][-2:] == learned[-2:], "both were in the leader's last view"


def test_a_member_that_cannot_get_a_frame_accuses_and_the_group_goes_on() -> None:
    group, (a, _, c) = a_group(A, B, C, repair={"give_up_ms": 300.0})
    group.lets = lambda source, target, message: not (target == B and is_data(message, c.id))
    group.send(c, "not for b")
    group.run(4_000)
    assert group.heard(FailureBlock, MemberId(B))
    group.heal()
    group.run(20_000)
    assert a.members == c.members
    assert b"not for b" in a.records


# Partition and merge


def test_both_sides_of_a_partition_go_on() -> None:
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.part([a, b], [c, d])
    group.run(2_000)
    assert a.members == b.members == (A, B)
    assert c.members == d.members == (D, C)
    group.send(a, "left")
    group.send(d, "right")
    group.run(300)
    assert (b.records[-1], c.records[-1]) == (b"left", b"right")


def test_a_merge_brings_both_sides_into_one_view() -> None:
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.part([a, b], [c, d])
    group.run(2_000)
    old = {node.id: node.endpoint.view for node in (a, b, c, d)}
    group.heal()
    group.run_until(lambda: {node.members for node in (a, b, c, d)} == {(A, B, D, C)})
    installs = {node.id: node.installs[-1] for node in (a, b, c, d)}
    assert len({install.view for install in installs.values()}) == 1
    assert installs[A].transitional == installs[B].transitional == (A, B)
    assert installs[C].transitional == installs[D].transitional == (D, C)
    assert len(installs[A].branches) == len(installs[C].branches) == 1
    assert old[A] == old[B] != old[C] == old[D]


def test_each_side_delivers_its_own_messages_before_the_merged_view() -> None:
    group, (a, b, c, d) = a_group(A, B, C, D)
    group.part([a, b], [c, d])
    group.run(2_000)
    group.send(a, "left")
    group.send(c, "right")
    group.run(200)
    group.heal()
    group.run_until(lambda: {node.members for node in (a, b, c, d)} == {(A, B, D, C)})
    group.send(d, "all")
    group.run(300)
    assert a.stream[-3:] == b.stream[-3:]
    assert c.stream[-3:] == d.stream[-3:]
    assert a.stream[-1] == c.stream[-1] == "all"
    assert "right" not in a.stream
    assert "left" not in c.stream


def test_seqs_go_on_across_views() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.send(a, "one")
    group.run(100)
    group.crash(c)
    group.run(1_500)
    group.send(a, "two")
    group.run(100)
    seqs = [m.seq for e in b.effects if hasattr(e, "chunk") for m in e.chunk.messages() if m.source == a.id]
    assert seqs == sorted(set(seqs))
    assert b.records == [b"one", b"two"]


def test_one_that_missed_the_change_asks_for_it() -> None:
    """M0: frames of a view that is not known are held, and its change is asked for."""
    group, (a, b, c) = a_group(A, B, C)
    receiver = group.join(0x77)
    group.run_until(lambda: receiver.state == "receiver")
    group.lets = lambda source, target, message: not (target == receiver.id and isinstance(message, MembershipChange))
    group.crash(c)
    group.run_until(lambda: a.members == b.members == (A, B))
    group.send(a, "in the next view")
    group.run(100)
    group.heal()
    group.run(500)
    assert group.heard(ViewRequest, receiver.id)
    assert receiver.stream[-2:] == ["a/b", "in the next view"]


# Quorum (M11)


def test_without_the_option_every_component_sends() -> None:
    group, (a, b, c) = a_group(A, B, C)
    group.part([a, b], [c])
    group.run(2_000)
    group.send(c, "minority")
    group.run(100)
    assert c.records == [b"minority"]


def test_with_a_majority_only_one_component_sends() -> None:
    group, (a, b, c) = a_group(A, B, C, group={"quorum": "majority"})  # type: ignore[dict-item]
    group.send(c, "together")
    group.run(200)
    group.part([a, b], [c])
    group.run(2_000)
    group.send(a, "majority")
    with pytest.raises(NoQuorum, match="majority"):
        group.send(c, "minority")
    group.run(200)
    assert b.records == [b"together", b"majority"]
    group.heal()
    group.run_until(lambda: a.members == c.members == (A, B, C))
    group.send(c, "again")
    group.run(300)
    assert a.records[-1] == b.records[-1] == c.records[-1] == b"again"


def test_a_full_restart_finds_its_quorum_from_what_was_persisted() -> None:
    group, nodes = a_group(A, B, C, group={"quorum": "majority"})  # type: ignore[dict-item]
    saved = [node.had(Persist)[-1].record for node in nodes]
    later = Wired(group={"quorum": "majority"})
    first = later.join(0x1A, sender=True, site=f"{A:016x}", record=saved[0])
    later.run(2_000)
    assert first.state == "sender"
    with pytest.raises(NoQuorum):
        later.send(first, "too few")
    second = later.join(0x1B, sender=True, site=f"{B:016x}", record=saved[1])
    later.run(3_000)
    assert first.members == second.members
    later.send(second, "a majority")
    later.run(300)
    assert first.records == [b"a majority"]
    assert group.nodes


def test_no_persist_is_needed_before_there_is_a_view() -> None:
    group = Wired()
    receiver = group.join(0x77)
    group.run(500)
    assert not receiver.had(Persist)
    assert not receiver.had(Install)


def test_what_is_ready_is_persisted_before_it_is_said() -> None:
    group, (a, b, c) = a_group(A, B, C)
    b.effects.clear()
    group.crash(c)
    group.run(1_500)
    assert a.members == (A, B)
    kinds = [type(effect).__name__ for effect in b.effects]
    assert group.heard(ReadyToCommit, b.id)
    assert group.heard(RecoveryInfo, b.id)
    assert kinds.index("Persist") < kinds.index("Install")


def test_consensus_messages_say_who_is_considered_and_who_failed() -> None:
    group, (_, _, c) = a_group(A, B, C)
    group.crash(c)
    group.run(1_500)
    last = group.heard(Join, MemberId(B))[-1]
    assert (last.procs, last.fails) == ((A, B, C), (C,))


def test_every_sender_of_a_view_with_a_quorum_sends_however_it_came_in() -> None:
    group, (a, b) = a_group(A, B, group={"quorum": "majority"})  # type: ignore[dict-item]
    group.send(a, "began the view")
    group.send(b, "was added")
    group.run(300)
    assert sorted(a.records) == sorted(b.records) == [b"began the view", b"was added"]
