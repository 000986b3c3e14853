"""Memory is reused when, and only when, nobody looks at it any more."""

from __future__ import annotations

import numpy as np

from intergroup_core.runtime.arena import ARENA_BYTES, MAX_POOLED, Arena, ArenaPool


def test_a_fresh_arena_is_free() -> None:
    assert not Arena().in_use


def test_a_slice_keeps_an_arena_in_use_until_it_goes() -> None:
    arena = Arena()
    part = arena.array[8:80]
    assert arena.in_use
    del part
    assert not arena.in_use


def test_a_view_of_a_view_keeps_it_in_use() -> None:
    arena = Arena()
    words = arena.array[: ARENA_BYTES // 2].view(np.uint64).reshape(-1, 8)[2:4]
    assert arena.in_use
    assert words.base is not None
    del words
    assert not arena.in_use


def test_a_memoryview_of_a_slice_keeps_it_in_use() -> None:
    arena = Arena()
    octets = memoryview(arena.array[16:32])
    assert arena.in_use
    octets.release()
    del octets
    assert not arena.in_use


def test_the_pool_hands_out_what_nobody_refers_to() -> None:
    pool = ArenaPool()
    first = pool.take()
    part = first.array[:8]
    second = pool.take(first)
    assert second is not first
    del part
    assert pool.take(second) is first
    assert len(pool) == 2


def test_the_pool_never_hands_out_the_current_arena() -> None:
    pool = ArenaPool()
    current = pool.take()
    assert pool.take(current) is not current


def test_beyond_its_maximum_the_pool_leaves_arenas_to_the_allocator() -> None:
    pool = ArenaPool()
    held = [pool.take().array[:8] for _ in range(MAX_POOLED + 3)]
    assert len(held) == MAX_POOLED + 3
    assert len(pool) == MAX_POOLED
