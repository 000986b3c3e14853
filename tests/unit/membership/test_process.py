"""What the machine does with what is late, repeated or out of place, and with quorums."""

from __future__ import annotations

from intergroup_core.effects import Persist
from intergroup_core.membership.quorum import QuorumRecord, key_of
from intergroup_core.wire.membership import (
    Leave,
    ReadyToCommit,
    Sponsorship,
)
from tests.builders import VIEW, A, B, C, R, S, after, millis
from tests.membership_builders import (
    a_failure_block,
    a_join,
    a_leave,
    a_ready,
    a_recovery_info,
    a_solicitation,
    an_add,
    an_add_request,
)
from tests.unit.membership.parts import a_newcomer, a_receiver, a_sender

# What may not happen twice


def test_information_and_readiness_outside_of_a_repair_are_passed_over() -> None:
    process = a_receiver(R)
    before = process.counters.membership_ignored
    process.hears(a_recovery_info(B), a_ready(B), an_add_request(S, R))
    assert process.counters.membership_ignored == before + 3
    assert process.state == "receiver"


def test_own_words_that_come_back_are_not_heard() -> None:
    process = a_sender()
    process.hears(a_join(A), a_failure_block(A, B, 1))
    assert process.state == "sender"


def test_blocks_last_through_a_repair_and_end_after_it() -> None:
    process = a_sender(block_ms=1_000)
    process.hears(a_failure_block(B, C, 7))
    for ms in range(50, 2_000, 50):
        process.at(ms)
        process.hears(a_join(B, serial=2 + ms))
    assert process.state == "consensus"
    assert C in process.machine.standing.blocks, "a repair is still under way (M7)"
    process.at(10_000)
    process.machine.tick(process.now)
    assert process.state == "sender", "alone, for B fell silent"
    assert C not in process.machine.standing.blocks


def test_a_tick_right_after_a_pause_accuses_nobody() -> None:
    process = a_sender(silence_ms=100_000)
    process.keeps_hearing(B, C, until_ms=500)
    process.now = after(millis(60_000))
    process.machine.tick(process.now)
    assert process.state == "sender"


def test_deciding_again_what_is_said_already_does_nothing() -> None:
    process = a_sender()
    process.machine.leave("left", process.now)
    process.machine.leave("clock", process.now)
    assert process.stream.emitted == [Leave(reason="left")]
    process.hears(ReadyToCommit(member=B, attempt=1, first_seq=1, cut=None))
    assert process.state == "to receiver"


def test_one_that_starts_anew_sponsors_nobody_any_more() -> None:
    process = a_receiver(R)
    for source in (A, B, C):
        process.delivers(a_leave(), source)
    process.hears(a_solicitation(S))
    process.machine.unanswered(A, 1, process.now)
    assert process.state == "bootstrap"
    process.at(100)
    assert process.said(Sponsorship) == []


# Quorum (M11)


def test_one_that_is_added_to_a_primary_view_may_send() -> None:
    process = a_receiver(R, rule="majority")
    process.machine.want_to_send(process.now)
    process.delivers(an_add(R))
    assert process.state == "sender"
    assert process.machine.standing.quorum.may_send
    record = QuorumRecord.from_bytes(process.emitted(Persist)[-1].record)
    assert record is not None
    assert record.last == process.view.id


def test_one_that_was_added_adds_others_without_a_repair() -> None:
    process = a_sender()
    process.hears(an_add_request(R, A))
    assert process.state == "sender"
    assert len(process.stream.emitted) == 1


def test_a_view_that_is_not_primary_grows_by_repair() -> None:
    five = QuorumRecord(VIEW.id, 1, frozenset(map(key_of, "abcde")))
    process = a_newcomer(A, sender=True, rule="majority", record=five)
    process.at(1_000)
    assert process.state == "sender"
    assert not process.machine.standing.quorum.may_send
    process.hears(an_add_request(R, A, epoch=process.view.id))
    assert process.state == "consensus"
    assert process.stream.emitted == []
