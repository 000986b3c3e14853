from __future__ import annotations

from intergroup_core.ids import MemberId
from intergroup_core.membership.blocks import BlockSet
from tests.builders import T0, A, B, millis
from tests.unit.membership.parts import a_membership_config

NOW = T0.mono


def a_block_set() -> BlockSet:
    return BlockSet(a_membership_config(block_ms=1_000))


def stays(blocks: BlockSet, member: MemberId, since: int) -> int:
    """How many milliseconds a member is blocked."""
    for ms in range(0, 100_000, 100):
        blocks.expire(since + millis(ms))
        if member not in blocks:
            return ms
    raise AssertionError("for ever")


def test_a_blocked_member_is_not_considered_until_its_time_is_over() -> None:
    blocks = a_block_set()
    blocks.blame(A, NOW)
    assert A in blocks
    assert B not in blocks
    assert stays(blocks, A, NOW) == 1_000


def test_nobody_is_let_go_unless_time_is_looked_at() -> None:
    blocks = a_block_set()
    blocks.blame(A, NOW)
    assert A in blocks, "a repair does not look at the time (M7)"


def test_each_stay_is_twice_as_long_up_to_a_limit() -> None:
    blocks = a_block_set()
    found = []
    at = NOW
    for _ in range(6):
        blocks.blame(A, at)
        found.append(stays(blocks, A, at))
        at += millis(100_000)
    assert found == [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]


def test_one_that_took_part_in_a_view_starts_anew() -> None:
    blocks = a_block_set()
    for _ in range(3):
        blocks.blame(A, NOW)
    blocks.forgive(A)
    assert A not in blocks
    blocks.blame(A, NOW)
    assert stays(blocks, A, NOW) == 1_000


def test_only_so_many_are_remembered() -> None:
    blocks = a_block_set()
    blocks.blame(A, NOW)
    for member in range(1, BlockSet.MAX_REMEMBERED + 1):
        blocks.blame(MemberId(1_000 + member), NOW)
    blocks.expire(NOW + millis(5_000))
    blocks.blame(A, NOW + millis(5_000))
    assert stays(blocks, A, NOW + millis(5_000)) == 1_000, "its first stay was forgotten"


def test_one_that_is_blocked_when_others_are_forgotten_is_still_let_go() -> None:
    blocks = a_block_set()
    for member in range(1, BlockSet.MAX_REMEMBERED + 10):
        blocks.blame(MemberId(member), NOW)
    blocks.expire(NOW + millis(1_001))
    assert not any(MemberId(member) in blocks for member in range(1, BlockSet.MAX_REMEMBERED + 10))


def test_one_that_does_not_answer_is_shunned_but_what_it_says_counts() -> None:
    blocks = a_block_set()
    blocks.shun(A, NOW)
    assert blocks.shuns(A)
    assert A not in blocks
    blocks.spoke(A)
    assert not blocks.shuns(A), "it takes part after all"


def test_one_that_is_blamed_is_shunned_whatever_it_says() -> None:
    blocks = a_block_set()
    blocks.blame(A, NOW)
    blocks.spoke(A)
    assert blocks.shuns(A)
    assert A in blocks


def test_a_shunned_member_is_let_go_in_time() -> None:
    blocks = a_block_set()
    blocks.shun(A, NOW)
    blocks.expire(NOW + millis(999))
    assert blocks.shuns(A)
    blocks.expire(NOW + millis(1_000))
    assert not blocks.shuns(A)


def test_silence_after_blame_makes_the_next_stay_longer_too() -> None:
    blocks = a_block_set()
    blocks.shun(A, NOW)
    blocks.blame(A, NOW)
    assert stays(blocks, A, NOW) == 2_000
