"""When a log goes on from an older one of its site."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from intergroup_core.agent.beginning import LogBeginning
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import OrderCut, SourceCut
from intergroup_core.log.manifest import read_manifest
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B, C
from tests.log_builders import a_chunk, a_log, an_install

END = OrderCut(START - 1_000, A)
"""Of an older log."""


def an_endpoint(me: MemberId, activations: dict[MemberId, int], position: int = START) -> Any:
    return SimpleNamespace(me=me, beginning=SimpleNamespace(activations=activations, position=position))


@pytest.mark.parametrize(
    ("members", "own", "activations", "continues"),
    [
        ((C,), (C,), {C: 1}, True),
        ((A,), (A, C), {A: 1}, True),
        ((A, B), (A, B, C), {A: 1, B: 1}, True),
        ((), (A, C), {}, False),
        ((A, B), (A, C), {A: 1, B: 1}, False),
        ((A, B), (A, B, C), {A: 50, B: 1}, False),
    ],
    ids=["itself", "a sender of its site", "two of them", "nobody", "somebody else too", "one that had sent before"],
)
def test_who_begins_a_group_with_members_of_its_site_alone_goes_on_with_its_log(
    members: tuple[MemberId, ...], own: tuple[MemberId, ...], activations: dict[MemberId, int], continues: bool
) -> None:
    disk = SimDisk()
    beginning = LogBeginning(Service.RTO, a_log(disk))
    assert beginning.begins(an_install(*members), an_endpoint(C, activations), own) is None
    assert beginning.continues(END) is continues
    assert (read_manifest(disk).after == END) is continues


def test_who_comes_into_the_midst_of_a_view_goes_on_from_nothing() -> None:
    beginning = LogBeginning(Service.RTO, a_log())
    assert beginning.begins(an_install(A), an_endpoint(C, {A: 1}, position=START + 7), (A, C)) is not None
    assert not beginning.continues(END)


def test_of_a_log_whose_beginning_was_removed_nobody_says_behind_what_it_begins() -> None:
    """All that follows that cut would seem to be there."""
    log = a_log(disk := SimDisk(), service=Service.RSO, segment_bytes=500)
    beginning = LogBeginning(Service.RSO, log)
    beginning.begins(an_install(C), an_endpoint(C, {C: 1}), (C,))
    log.append(an_install(C))
    for seq in range(1, 6):
        log.append(a_chunk(bytes(200), source=C, seq=seq, timestamp=START + seq))
    log.remove(log.sealed[:1])
    beginning.follows(SourceCut({C: 0}))
    assert not beginning.continues(SourceCut({C: 0}))
    assert read_manifest(disk).after is None


@pytest.mark.parametrize("service", [Service.RSO, Service.UU])
def test_by_rso_a_log_says_at_once_what_it_may_lack(service: Service) -> None:
    """Behind what it begins is known only later, of all senders there ever were."""
    log = a_log(disk := SimDisk(), service=service)
    LogBeginning(service, log).begins(an_install(A), an_endpoint(C, {A: 8, B: 1}, position=START + 7), (C,))
    manifest = read_manifest(disk)
    assert manifest.after is None
    assert manifest.missing == (SourceCut({A: 7, B: 0}, an_install(A).view.id) if service is Service.RSO else None)
