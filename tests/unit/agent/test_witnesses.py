"""What sites say of their logs: only those who are asked, when they have it, and never more than they have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from intergroup_core.agent.held import MAX_SENDERS, Held
from intergroup_core.agent.witnesses import MAX_PENDING, Witnesses, has_all
from intergroup_core.ids import MemberId, SiteId, group_tag
from intergroup_core.wire.keeping import MAX_ASKED, HoldingAnswer, HoldingQuery, Span
from tests.builders import A, B
from tests.log_builders import a_chunk, a_gap, an_install

GROUP = "prices"


def held(*events: object) -> Held:
    log = Held()
    for entry, event in enumerate(events):
        log.appended(entry, event)  # type: ignore[arg-type]
    log.kept(len(events))
    return log


def chunk(source: MemberId, seq: int) -> object:
    return a_chunk(b"row", source=source, seq=seq, timestamp=1_000 + seq)


def test_what_is_kept_is_held_from_the_first_to_the_last() -> None:
    log = held(an_install(A, B), chunk(A, 3), chunk(B, 1), chunk(A, 4), chunk(A, 6))
    assert log.within([(A, 3, 6), (B, 1, 1)]) == ((A, 3, 6), (B, 1, 1))
    assert log.within([(A, 1, 9)]) == ((A, 3, 6),)
    assert log.within([(A, 7, 9), (B, 2, 2), (MemberId(99), 1, 1)]) == ()


def test_what_is_appended_and_not_kept_is_not_held() -> None:
    log = Held()
    log.appended(0, chunk(A, 1))  # type: ignore[arg-type]
    log.appended(1, chunk(A, 2))  # type: ignore[arg-type]
    assert log.within([(A, 1, 2)]) == ()
    log.kept(1)
    assert log.within([(A, 1, 2)]) == ((A, 1, 1),)


def test_what_lies_before_a_gap_does_not_make_what_follows_whole() -> None:
    log = held(chunk(A, 1), a_gap(), chunk(A, 5))
    assert log.within([(A, 1, 5)]) == ((A, 5, 5),)


def test_what_was_skipped_and_fetched_since_makes_it_whole() -> None:
    log = held(chunk(A, 1), a_gap(), chunk(A, 5))
    log.older = [{A: (2, 4)}]
    assert log.within([(A, 2, 5)]) == ((A, 2, 5),)
    assert log.within([(A, 1, 5)]) == ((A, 2, 5),)


def test_what_a_sender_sent_on_the_other_side_of_a_partition_is_not_held() -> None:
    meeting = replace(an_install(A, B), transitional=(A,), branches=("the other side",))
    log = held(chunk(A, 1), chunk(B, 1), chunk(B, 2), meeting, chunk(A, 2), chunk(B, 9))
    assert log.within([(B, 1, 9)]) == ((B, 9, 9),)
    assert log.within([(B, 3, 8)]) == ()
    assert log.within([(A, 1, 2)]) == ((A, 1, 2),)


def test_what_older_logs_have_is_held_too_but_nothing_that_lies_in_none() -> None:
    log = held(chunk(A, 7))
    log.older = [{A: (1, 5)}]
    assert log.within([(A, 2, 3)]) == ((A, 2, 3),)
    assert log.within([(A, 2, 7)]) == ((A, 2, 5),)


def test_of_senders_that_were_silent_for_longest_nothing_is_known_any_more() -> None:
    log = held(*(chunk(MemberId(number), 1) for number in range(1, MAX_SENDERS + 2)))
    assert log.within([(MemberId(1), 1, 1)]) == ()
    assert log.within([(MemberId(2), 1, 1)]) == ((MemberId(2), 1, 1),)


def a_question(serial: int, *asked: int) -> HoldingQuery:
    return HoldingQuery(
        site=SiteId(1), serial=serial, group=group_tag(GROUP), asked=asked, spans=((A, 1, 1),), waits=True
    )


class Sites:
    """Sites that hear each other's questions, some of which are lost."""

    def __init__(self, count: int, *, deaf: Sequence[int] = ()) -> None:
        self.all = [Witnesses(SiteId(number), number) for number in range(1, count + 1)]
        self.logs = [Held() for _ in self.all]
        for site, log in zip(self.all, self.logs, strict=True):
            site.holds(GROUP, log)
        self.deaf = set(deaf)
        self.questions: list[HoldingQuery] = []

    def say(self, query: HoldingQuery) -> None:
        self.questions.append(query)
        for site in self.all:
            if site.key != query.site and site.key not in self.deaf:
                site.asked(query, self._answer)

    def _answer(self, answer: HoldingAnswer) -> None:
        self.all[0].told(answer)

    def keep(self, number: int, *events: object) -> None:
        log = self.logs[number - 1]
        for entry, event in enumerate(events):
            log.appended(entry, event)  # type: ignore[arg-type]
        log.kept(len(events))
        self.all[number - 1].kept()

    async def have(self, spans: list[Span], enough: int, seconds: float = 5.0, *, waits: bool = True) -> set[int]:
        others = [site.key for site in self.all[1:]]
        answers = await self.all[0].have(self.say, GROUP, spans, others, enough=enough, seconds=seconds, waits=waits)
        return {site for site, known in answers.items() if has_all(known, spans)}


def test_sites_that_have_it_say_so_at_once() -> None:
    async def scenario() -> None:
        sites = Sites(3)
        sites.keep(2, chunk(A, 1), chunk(A, 2))
        assert await sites.have([(A, 1, 2)], 1) == {2}
        assert len(sites.questions) == 1

    asyncio.run(scenario())


def test_a_site_that_does_not_have_it_yet_answers_when_it_does() -> None:
    async def scenario() -> None:
        sites = Sites(2)
        waiting = asyncio.create_task(sites.have([(A, 1, 2)], 1))
        while not sites.questions:
            await asyncio.sleep(0)  # until the question is out
        sites.keep(2, chunk(A, 1), chunk(A, 2))
        assert await waiting == {2}

    asyncio.run(scenario())


def test_who_lacks_a_part_of_it_does_not_count() -> None:
    async def scenario() -> None:
        sites = Sites(3)
        sites.keep(2, chunk(A, 2))
        sites.keep(3, chunk(A, 1), a_gap(), chunk(A, 2))
        assert await sites.have([(A, 1, 2)], 2, 0.05) == set()

    asyncio.run(scenario())


def test_who_does_not_answer_is_asked_again_until_the_time_is_over() -> None:
    async def scenario() -> None:
        sites = Sites(3, deaf=[3])
        sites.keep(2, chunk(A, 1))
        assert await sites.have([(A, 1, 1)], 2, 0.25) == {2}
        assert len(sites.questions) >= 2
        assert sites.questions[-1].asked == (3,)

    asyncio.run(scenario())


def test_many_sites_are_not_asked_all_at_once_and_no_more_than_needed_are() -> None:
    async def scenario() -> None:
        sites = Sites(200)
        for number in range(2, 201):
            sites.keep(number, chunk(A, 1))
        assert len(await sites.have([(A, 1, 1)], 100)) >= 100
        assert all(len(query.asked) <= MAX_ASKED for query in sites.questions)
        assert sum(len(query.asked) for query in sites.questions) < 100 + MAX_ASKED

    asyncio.run(scenario())


def test_a_reader_that_does_not_wait_hears_how_much_there_is() -> None:
    async def scenario() -> None:
        sites = Sites(2)
        sites.keep(2, chunk(A, 1))
        answers = await sites.all[0].have(
            sites.say, GROUP, [(A, 1, 9), (B, 1, 1)], [2], enough=1, seconds=5.0, waits=False
        )
        assert answers == {2: {A: (1, 1)}}

    asyncio.run(scenario())


@pytest.mark.parametrize("asked", [(), (1, 3)])
def test_who_is_not_asked_is_silent(asked: tuple[int, ...]) -> None:
    heard: list[HoldingAnswer] = []
    site = Witnesses(SiteId(2), 2)
    site.holds(GROUP, held(chunk(A, 1)))
    site.asked(a_question(1, *asked), heard.append)
    assert heard == []


def test_questions_that_wait_are_bounded_and_end_with_the_log() -> None:
    heard: list[HoldingAnswer] = []
    site, log = Witnesses(SiteId(2), 2), Held()
    site.holds(GROUP, log)
    for serial in range(MAX_PENDING + 10):
        query = HoldingQuery(
            site=SiteId(1), serial=serial, group=group_tag(GROUP), asked=(2,), spans=((A, 1, 1),), waits=True
        )
        site.asked(query, heard.append)
    log.appended(0, chunk(A, 1))  # type: ignore[arg-type]
    log.kept(1)
    site.kept()
    assert len(heard) == MAX_PENDING
    site.ended(GROUP, log)
    site.asked(query, heard.append)
    assert len(heard) == MAX_PENDING


def test_a_site_that_has_not_stated_what_it_remembers_holds_nothing() -> None:
    log = held(an_install(A, B), chunk(A, 1))
    unstated = True
    log.withheld = lambda: unstated
    assert log.within([(A, 1, 1)]) == ()
    unstated = False
    assert log.within([(A, 1, 1)]) == ((A, 1, 1),)
