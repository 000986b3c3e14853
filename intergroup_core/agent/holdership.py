"""Whether a site is one whose log of a group others may rely on: it says so, again in time, and when it goes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from intergroup_core.errors import LocalProtocolError, MemberEnded, NoQuorum
from intergroup_core.runtime.member import Member
from intergroup_core.wire.statements import Holding

RETRY_SECONDS = 1.0
"""After which it is tried again to say it, where it could not be."""
SAY_AGAIN = 3
"""So often within the time for which a word counts."""


class Holdership:
    """One site's word on one group's log; it goes through a member that sends, at its place among what that sends."""

    def __init__(self, site: int, name: str, seconds: float) -> None:
        self._site = site
        self._name = name
        self._seconds = max(1, round(seconds))
        self._again: asyncio.TimerHandle | None = None
        self._member: Member | None = None
        """Who says it: the one that was to send last."""
        self.own: Member | None = None
        """The stream's own member, which speaks where that one has gone."""

    @property
    def holds(self) -> bool:
        return self._again is not None

    def begin(self, member: Member) -> None:
        """Say that the log is held, once."""
        self._member = member
        if self._again is None:
            self.say_again()

    def say_again(self) -> None:
        """In time, and where it may not have been heard."""
        said = self._say(self._member, holds=True)
        if self._again is not None:
            self._again.cancel()
        wait = self._seconds / SAY_AGAIN if said else RETRY_SECONDS
        self._again = asyncio.get_running_loop().call_later(wait, self.say_again)

    def end(self, member: Member) -> None:
        """The member is about to leave in good order: nobody is to count on the log any more."""
        if self.forget():
            self._say(member, holds=False)

    def forget(self) -> bool:
        """Say nothing more; whether there was something to say."""
        if self._again is None:
            return False
        self._again.cancel()
        self._again = None
        return True

    def _say(self, member: Member | None, *, holds: bool) -> bool:
        for speaker in (member, self.own):
            if speaker is None or speaker.closed:
                continue
            with suppress(LocalProtocolError, MemberEnded, NoQuorum):  # one that is out of its group is not heard
                speaker.declare(Holding(self._site, self._name, holds, self._seconds))
                return True
        return False
