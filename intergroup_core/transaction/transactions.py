"""Which transactions of a group are visible: a state that ordered messages alone change, the same at all who had them.

A transaction becomes visible in two steps. A **proposal** names the attempts whose rows count; the first sound one for
an application's version is the only candidate. Once a majority of the **voters**, sites that hold the log, have it, a
**decision** says so, and from there on the rows are visible. In between nobody can tell: whoever proposed may be in a
part of the group that is left behind.

A part of the group counts only once it is **established** after a repair. Everybody in its view says what it knew, and
from then on promises to have no part in an earlier round; a majority of the voters must have all of that. So no two
parts have the same **era**, and what may have been decided in an earlier one is known in the next. There it is a
candidate again, as if it had been proposed anew: a majority must have it in this era before it is decided, for an
earlier one may have had another candidate of which only a minority ever heard.

Voters change only with a decision, which needs a majority of the old ones and of the new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, timestamp_span
from intergroup_core.transaction.holders import Holders
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.glance import Labelled
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Abandoned, Carried, Decided, Established, Proposed

MAX_APPLICATIONS = 96
"""Remembered; of more than these the one that was heard longest ago is forgotten."""
MAX_RUNS = 4
"""Of an application."""
MAX_PENDING = 2
"""Proposals that may be undecided at a time; another one waits."""
MAX_CARRIED = 8
"""Proposals that were said again, and are not decided."""
MAX_OPEN = 64
"""Transactions with staged rows that are kept for them."""
MAX_SENDERS = 128
"""Of staged rows, while a transaction is open."""
MAX_RECENT = 64
"""Versions of applications that do not last, remembered for those who ask again."""
NOBODY = MemberId(0)
_SECOND = 1_000_000_000


class Verdict(Enum):
    """What became of a statement."""

    TAKEN = "taken"
    COMMITTED = "it was committed before"
    UNESTABLISHED = "this part of the group has not been found to have a majority of the log-holding sites"
    UNSETTLED = "another transaction has been proposed and is not decided yet"
    SUPERSEDED = "a newer run of the same application has begun to write"
    LATE = "it was proposed too long after its first row was staged"
    LACKING = (
        "rows that were staged for it did not come through a partition or the end of their sender, or more than "
        f"{MAX_SENDERS} sites stage rows at the same time"
    )
    UNKNOWN = "what it refers to is not there"


class Pending(NamedTuple):
    """A proposal that may be decided."""

    version: int
    proposer: MemberId
    seq: int
    timestamp: int
    since: int
    """The first timestamp of its rows."""
    lasting: bool
    accepted: int
    """When it became a candidate of the present era: who has that place has it."""
    voters: frozenset[int]
    """Who decides from then on."""


class Decision(NamedTuple):
    """A transaction is visible from a statement on."""

    timestamp: int
    sender: MemberId
    proposal: tuple[MemberId, int, int]
    """Sender, seq and timestamp of the proposal that names its rows."""
    said: tuple[MemberId, int, int]
    """The same of the message that says so in this part of the group: the proposal, or one that carries it."""


@dataclass(slots=True)
class Application:
    """What is remembered of one that writes."""

    runs: dict[bytes, int] = field(default_factory=dict)
    """When each was first heard of."""
    version: int = -1
    """The last that was decided."""
    decided: tuple[MemberId, int] | None = None
    """Sender and seq of its proposal."""
    heard: int = 0
    pending: Pending | None = None

    def is_newest(self, run: bytes) -> bool:
        return max(self.runs, key=lambda each: (self.runs[each], each)) == run

    def hear(self, run: bytes, timestamp: int) -> None:
        self.heard = max(self.heard, timestamp)
        self.runs[run] = min(timestamp, self.runs.get(run, timestamp))
        while len(self.runs) > MAX_RUNS:
            del self.runs[min(self.runs, key=lambda each: (self.runs[each], each))]


class Open(NamedTuple):
    """Rows are staged for it."""

    since: int
    until: int
    """By then its last attempt must be proposed."""

    def until_later(self, until: int) -> Open:
        return self if until <= self.until else Open(self.since, until)

    def joined(self, other: Open) -> Open:
        return Open(min(self.since, other.since), max(self.until, other.until))


OpenKey = tuple[bytes, bytes, int]


class Transactions:
    """One member's, or one reader's."""

    def __init__(self) -> None:
        self.era = 0
        """The round in which a part of the group was established last."""
        self.promised = 0
        """The last round that was begun: nothing of an earlier one is established any more by who knows this."""
        self.established = False
        self.gathered = 0
        """When those in the view were asked what they know, since the last repair; 0 where they were not."""
        self.awaiting: frozenset[MemberId] = frozenset()
        """Who of them has not said it yet."""
        self.settled = 0
        """When the last of them had."""
        self.floor = 0
        """Rows that were staged at or before it are not at everybody."""
        self.voters: frozenset[int] = frozenset()
        self.voters_since = 0
        self.members: frozenset[MemberId] = frozenset()
        self.applications: dict[bytes, Application] = {}
        self.opens: dict[OpenKey, Open] = {}
        self.reach: dict[MemberId, tuple[int, int]] = {}
        """Up to which seq of its sender staged messages came, and when."""
        self.recent: dict[tuple[bytes, int], tuple[int, MemberId, int]] = {}
        """Decided versions of applications that do not last: when, and sender and seq of the proposal."""
        self.carried: dict[tuple[MemberId, int], tuple[MemberId, int, int]] = {}
        """Where proposals were said again in this part of the group."""

    @property
    def used(self) -> bool:
        """Whether anybody ever made a transaction here."""
        return bool(self.promised or self.applications or self.opens or self.gathered or self.recent)

    # Views

    def enter(self, install: Install, *, first: bool) -> None:
        """A view begins; the first one of an incarnation has nothing before it."""
        members = frozenset(install.view.members)
        self.members = members
        if is_repair(install):
            self._part()
            if install.branches and not first and self.used:
                self.floor = max(self.floor, install.view.id.start)
            return
        gone = frozenset(departure.member for departure in install.departed)
        self._heard_from(gone, int(install.view.id.start))

    def leave_stream(self) -> None:
        """What follows is another stream: rows of this one are not in it."""
        self._part()
        self.reach.clear()

    def _part(self) -> None:
        self.established = False
        self.gathered = self.settled = 0
        self.awaiting = frozenset()
        self.carried.clear()

    # Whether this part of the group counts

    def gather(self, timestamp: int) -> bool:
        """Everybody in the view is to say what it knows; whether that is news."""
        if self.established or self.gathered:
            return False
        self.gathered = timestamp
        self.awaiting = self.members
        return True

    def restated(self, other: Transactions, member: MemberId, timestamp: int) -> list[Decision]:
        """What a member knows; what was visible there and is a candidate here becomes visible."""
        later = other.promised > self.promised
        decisions = self.merge(other, timestamp, member)
        if later and self.established:
            self._part()
        elif later and self.gathered and not self.awaiting:
            self._settle(timestamp)
        if other.gathered == self.gathered:  # else it was said before all were asked, and something may have come since
            self._heard_from(frozenset({member}), timestamp)
        return decisions

    def _heard_from(self, members: frozenset[MemberId], timestamp: int) -> None:
        if self.gathered and self.awaiting & members:
            self.awaiting -= members
            if not self.awaiting:
                self._settle(timestamp)

    def _settle(self, timestamp: int) -> None:
        """All in the view have said what they know: who has this place promises to have no part in earlier rounds."""
        self.settled = timestamp
        self.promised += 1

    def establish(self, stated: Established, timestamp: int, holders: Holders) -> Verdict:
        """A majority knows all there is to know; candidates of before are candidates of this era."""
        if self.established:
            return Verdict.TAKEN
        if not self.gathered or self.awaiting or not self.settled <= stated.probe < timestamp:
            return Verdict.UNESTABLISHED
        electorates = self.electorates(timestamp, holders)
        if not all(is_majority(stated.sites, electorate) for electorate in electorates):
            return Verdict.UNESTABLISHED
        self.era = self.promised
        self.established = True
        if not self.voters:
            self.voters, self.voters_since = electorates[0], timestamp
        for application in self.applications.values():
            if application.pending is not None:
                application.pending = application.pending._replace(accepted=timestamp)
        return Verdict.TAKEN

    def electorates(self, timestamp: int, holders: Holders) -> tuple[frozenset[int], ...]:
        """Of each of which a majority is needed to establish a part: any candidate may have been decided elsewhere."""
        of_pending = (self.electorate_of(each, timestamp, holders) for _, each in self.pending())
        return self.electorate(timestamp, holders), *of_pending

    def electorate(self, timestamp: int, holders: Holders) -> frozenset[int]:
        """The voters that have not ceased to hold the log since; all who hold it where there are none."""
        return _still(self.voters, self.voters_since, holders) or frozenset(holders.at(timestamp))

    def electorate_of(self, pending: Pending, timestamp: int, holders: Holders) -> frozenset[int]:
        """Those who are to decide after a proposal, as far as they have not ceased to hold the log since.

        Where all of them have, those who decide now: else nobody could ever decide it, or anything behind it.
        """
        return _still(pending.voters, pending.timestamp, holders) or self.electorate(timestamp, holders)

    def pending(self) -> list[tuple[bytes, Pending]]:
        """Proposals that are not decided, the oldest first."""
        found = [(key, app.pending) for key, app in self.applications.items() if app.pending is not None]
        return sorted(found, key=lambda each: (each[1].timestamp, each[1].proposer))

    # Transactions

    def stage(self, message: Labelled, sender: MemberId) -> None:
        """Rows of a transaction, at their place."""
        label, timestamp = message.label, message.timestamp
        app, run = key_of(label.app), key_of(label.run)
        self.reach[sender] = message.seq, timestamp
        self._forget_silent()
        committed = self.is_committed(app, label.version)
        if committed and app not in self.applications:
            return  # of one that is over and need not be remembered
        self._application(app, timestamp).hear(run, timestamp)
        if committed:
            return
        known = self.opens.get((app, run, label.version))
        until = timestamp + timestamp_span(label.timeout_s * _SECOND)
        self.opens[app, run, label.version] = Open(timestamp, until) if known is None else known.until_later(until)
        if known is None:
            self._close_expired(timestamp)

    def propose(self, stated: Proposed, timestamp: int, sender: MemberId, seq: int, holders: Holders) -> Verdict:
        key, run = key_of(stated.app), key_of(stated.run)
        if key not in self.applications and self.is_committed(key, stated.version):
            return Verdict.COMMITTED
        application = self._application(key, timestamp)
        application.hear(run, timestamp)
        verdict = self._verdict(key, run, stated, timestamp)
        if verdict is Verdict.TAKEN:
            since = min((staged.first_timestamp for staged in stated.attempts), default=timestamp)
            voters = frozenset(holders.at(timestamp)) or self.voters
            application.pending = Pending(
                stated.version, sender, seq, timestamp, since, stated.lasting, timestamp, voters
            )
        return verdict

    def _verdict(self, key: bytes, run: bytes, stated: Proposed, timestamp: int) -> Verdict:
        application = self.applications[key]
        if self.is_committed(key, stated.version):
            return Verdict.COMMITTED
        if not self.established:
            return Verdict.UNESTABLISHED
        if application.pending is not None or len(self.pending()) >= MAX_PENDING:
            return Verdict.UNSETTLED
        if not application.is_newest(run):
            return Verdict.SUPERSEDED
        limit = timestamp - timestamp_span(stated.timeout_s * _SECOND)
        if any(staged.first_timestamp < limit for staged in stated.attempts):
            return Verdict.LATE
        if not all(self._holds(staged) for staged in stated.attempts):
            return Verdict.LACKING
        return Verdict.TAKEN

    def _holds(self, staged: Staged) -> bool:
        reached, _ = self.reach.get(MemberId(staged.sender), (0, 0))
        return staged.first_timestamp > self.floor and reached >= staged.last_seq

    def is_committed(self, app: bytes, version: int) -> bool:
        application = self.applications.get(app)
        return (application is not None and version <= application.version) or (app, version) in self.recent

    def decide(
        self, stated: Decided, timestamp: int, sender: MemberId, holders: Holders
    ) -> tuple[Verdict, list[Decision]]:
        app = stated.app
        if self.is_committed(app, stated.version):
            return Verdict.COMMITTED, []
        if not self.established:
            return Verdict.UNESTABLISHED, []
        application = self.applications.get(app)
        pending = application.pending if application is not None else None
        if pending is None or pending[:3] != (stated.version, stated.proposer, stated.seq):
            return Verdict.UNKNOWN, []
        if not pending.accepted <= stated.probe < timestamp:
            return Verdict.UNKNOWN, []
        electorates = (self.electorate(timestamp, holders), self.electorate_of(pending, timestamp, holders))
        if not all(is_majority(stated.sites, electorate) for electorate in electorates):
            return Verdict.UNESTABLISHED, []
        self.voters, self.voters_since = electorates[1], timestamp
        return Verdict.TAKEN, [self._decide(app, pending, timestamp, sender)]

    def _decide(self, app: bytes, pending: Pending, timestamp: int, sender: MemberId) -> Decision:
        application = self.applications[app]
        application.pending = None
        if pending.lasting:
            application.version, application.decided = pending.version, (pending.proposer, pending.seq)
        else:
            self.recent[app, pending.version] = timestamp, pending.proposer, pending.seq
            self._forget_recent()
        self._close_committed()
        self._forget_empty(app)
        proposal = pending.proposer, pending.seq, pending.timestamp
        return Decision(timestamp, sender, proposal, self.carried.pop(proposal[:2], proposal))

    def carry(self, stated: Carried, timestamp: int, sender: MemberId, seq: int) -> None:
        """What was proposed is in the logs of this part from here on, whether or not it was before."""
        self.carried.setdefault((stated.proposer, stated.seq), (sender, seq, timestamp))
        while len(self.carried) > MAX_CARRIED:
            del self.carried[min(self.carried, key=lambda each: (self.carried[each][2], each))]

    def abandon(self, stated: Abandoned) -> None:
        app = key_of(stated.app)
        self._close([(app, key_of(stated.run), stated.version)])
        self._forget_empty(app)

    def open_since(self, timestamp: int) -> int | None:
        """From when on rows may still become visible behind a place; None where there are none."""
        opens = [each.since for each in self.opens.values() if each.until >= timestamp]
        return min([*opens, *(pending.since for _, pending in self.pending())], default=None)

    # What is remembered

    def _application(self, app: bytes, timestamp: int) -> Application:
        application = self.applications.setdefault(app, Application(heard=timestamp))
        self._forget_oldest(app)
        return application

    def _forget_oldest(self, but: bytes | None = None) -> None:
        while len(self.applications) > MAX_APPLICATIONS:
            idle = [key for key, each in self.applications.items() if each.pending is None and key != but]
            # First those of which there is nothing to remember but that they began.
            del self.applications[min(idle, key=lambda key: (*self._worth(key), key))]

    def _worth(self, key: bytes) -> tuple[bool, int]:
        application = self.applications[key]
        return application.version >= 0, application.heard

    def _forget_empty(self, app: bytes) -> None:
        """One that has committed nothing, and has nothing under way."""
        application = self.applications.get(app)
        empty = application is not None and application.version < 0 and application.pending is None
        if empty and not any(key[0] == app for key in self.opens):
            del self.applications[app]

    def _forget_recent(self) -> None:
        while len(self.recent) > MAX_RECENT:
            del self.recent[min(self.recent, key=lambda each: (self.recent[each], each))]

    def _forget_silent(self) -> None:
        while len(self.reach) > MAX_SENDERS:
            del self.reach[min(self.reach, key=lambda member: (self.reach[member][1], member))]

    def _close_expired(self, timestamp: int) -> None:
        self._close(key for key, each in self.opens.items() if each.until < timestamp)
        while len(self.opens) > MAX_OPEN:
            del self.opens[min(self.opens, key=lambda key: (self.opens[key], key))]

    def _close_committed(self) -> None:
        self._close(key for key in self.opens if self.is_committed(key[0], key[2]))

    def _close(self, keys: Iterable[OpenKey]) -> None:
        for key in list(keys):
            self.opens.pop(key, None)

    def merge(self, other: Transactions, timestamp: int = 0, sender: MemberId = NOBODY) -> list[Decision]:
        """What others knew who come from elsewhere: who was established later knows what was decided before.

        What comes of it does not depend on the order in which several are taken in.
        """
        decisions = [
            self._decide(app, pending, timestamp, sender)
            for app, pending in self.pending()
            if other.has_decided(app, pending)
        ]
        for recent_key, decided in other.recent.items():
            self.recent[recent_key] = min(decided, self.recent.get(recent_key, decided))
        if other.era > self.era:
            for application in self.applications.values():
                application.pending = None
        self._merge_voters(other)
        for key, theirs in other.applications.items():
            mine = self.applications.setdefault(key, Application())
            mine.heard = max(mine.heard, theirs.heard)
            if theirs.version > mine.version:
                mine.version, mine.decided = theirs.version, theirs.decided
            for run, heard in theirs.runs.items():
                mine.hear(run, heard)
            if other.era >= self.era and theirs.pending is not None:
                mine.pending = min(mine.pending or theirs.pending, theirs.pending, key=_by_place)
        for key, application in self.applications.items():
            if application.pending is not None and self.is_committed(key, application.pending.version):
                application.pending = None
        self.era = max(self.era, other.era)
        self.promised = max(self.promised, other.promised)
        self.floor = max(self.floor, other.floor)
        for open_key, open_one in other.opens.items():
            self.opens[open_key] = open_one.joined(self.opens.get(open_key, open_one))
        for member, reached in other.reach.items():
            self.reach[member] = max(reached, self.reach.get(member, reached))
        self._close_committed()
        for app in {app for app, _ in self.recent}:
            self._forget_empty(app)
        self._forget_oldest()
        self._forget_recent()
        self._forget_silent()
        return decisions

    def has_decided(self, app: bytes, pending: Pending) -> bool:
        """Whether just this was decided here, as far as that is remembered."""
        proposal = pending.proposer, pending.seq
        application = self.applications.get(app)
        last = application is not None and application.version == pending.version and application.decided == proposal
        return last or self.recent.get((app, pending.version), (0,))[1:] == proposal

    def _merge_voters(self, other: Transactions) -> None:
        mine, theirs = (self.era, self.voters_since), (other.era, other.voters_since)
        if theirs > mine:
            self.voters, self.voters_since = other.voters, other.voters_since


def is_repair(install: Install) -> bool:
    """Whether a view was agreed upon because somebody failed or was met, and not made by an ordered message."""
    behind = {member for member, _ in install.before}
    return bool(install.branches) or (bool(behind) and behind.issuperset(install.view.members))


def is_majority(sites: Iterable[int], electorate: frozenset[int]) -> bool:
    return 2 * len(electorate.intersection(sites)) > len(electorate)


def _by_place(pending: Pending) -> tuple[int, MemberId]:
    return pending.timestamp, pending.proposer


def _still(voters: frozenset[int], since: int, holders: Holders) -> frozenset[int]:
    """Those of whom nothing says that they ceased. Silence does not: in a partition it is on both sides."""
    words = ((site, holders.word_on(site)) for site in voters)
    return frozenset(site for site, word in words if word is None or (word.holds and word.since <= since))
