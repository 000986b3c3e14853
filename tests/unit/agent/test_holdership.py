"""A site's word on its log: said once, said again in time, taken back when it goes, and never by one who has gone."""

from __future__ import annotations

import asyncio
from typing import cast

from intergroup_core.agent.holdership import SAY_AGAIN, Holdership
from intergroup_core.errors import LocalProtocolError
from intergroup_core.runtime.member import Member
from intergroup_core.wire.statements import Holding, Statement


class Speaker:
    """A member, as far as it is asked to say something."""

    def __init__(self) -> None:
        self.said: list[Statement] = []
        self.closed = False

    def declare(self, statement: Statement) -> None:
        if self.closed:
            raise LocalProtocolError("closed")
        self.said.append(statement)

    @property
    def member(self) -> Member:
        return cast("Member", self)


HELD = Holding(7, "here", True, 60)


def test_a_site_says_once_that_it_holds_the_log_and_once_that_it_does_not() -> None:
    async def scenario() -> None:
        word, speaker = Holdership(7, "here", 60), Speaker()
        assert not word.holds
        word.begin(speaker.member)
        word.begin(speaker.member)
        assert word.holds
        assert speaker.said == [HELD]
        word.end(speaker.member)
        word.end(speaker.member)
        assert not word.holds
        assert speaker.said == [HELD, Holding(7, "here", False, 60)]
        word.begin(speaker.member)
        assert speaker.said[-1] == HELD
        word.forget()

    asyncio.run(scenario())


def test_it_says_so_again_in_time_through_whoever_was_to_send_last() -> None:
    async def scenario() -> None:
        word, first, second = Holdership(7, "here", 60), Speaker(), Speaker()
        word.begin(first.member)
        word.begin(second.member)
        first.closed = True
        again = word._again
        assert again is not None
        assert again.when() - asyncio.get_running_loop().time() <= 60 / SAY_AGAIN
        again._run()  # its time has come
        assert (first.said, second.said) == ([HELD], [HELD])
        assert word._again is not again
        assert word.forget()
        assert not word.forget()

    asyncio.run(scenario())


def test_one_that_is_out_of_the_group_is_not_asked_in_vain() -> None:
    async def scenario() -> None:
        word, speaker = Holdership(7, "here", 60), Speaker()
        word.begin(speaker.member)
        speaker.closed = True
        word.end(speaker.member)
        assert speaker.said == [HELD]
        assert not word.holds

    asyncio.run(scenario())
