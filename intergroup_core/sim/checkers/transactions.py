"""Transactions: each becomes visible once, in one way, everywhere, with all of its rows (19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from intergroup_core.ids import MemberId
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.transaction_trace import (
    Begun,
    Counts,
    Event,
    Met,
    Place,
    Proposal,
    Replayed,
    Stood,
    Told,
    TransactionTrace,
    Unended,
    Version,
    Visible,
)

TransactionChecker = Callable[[TransactionTrace], Violation | None]


def one_outcome(trace: TransactionTrace) -> Violation | None:
    """19a. Of the proposals for a version one at most becomes visible, whoever looks, and once in a stream."""
    versions = _versions(trace)
    chosen: dict[Version, Visible] = {}
    shown: dict[tuple[MemberId, Place], Visible] = {}
    for event in trace.events:
        if not isinstance(event, Visible):
            continue
        version = versions.get(event.proposal)
        if version is None:
            return _violation("19a one outcome", event.stream, "what nobody proposed is visible", event)
        first = chosen.setdefault(version, event)
        if first.proposal != event.proposal:
            detail = f"two proposals for {version[0]}/{version[1]} are visible"
            return _violation("19a one outcome", event.stream, detail, first, event)
        before = shown.setdefault((event.stream, event.proposal), event)
        if before is not event:
            return _violation("19a one outcome", event.stream, "a transaction is visible twice", before, event)
    return None


def same_ledger(trace: TransactionTrace) -> Violation | None:
    """19b. In a part that counts all who are at the same place know the same."""
    known: dict[tuple[str, int, MemberId], Stood] = {}
    for event in trace.events:
        if isinstance(event, Stood):
            first = known.setdefault((event.view, event.timestamp, event.sender), event)
            if first.ledger != event.ledger:
                return _violation("19b same ledger", event.stream, "another ledger at the same place", first, event)
    return None


def same_decisions(trace: TransactionTrace) -> Violation | None:
    """19b. What becomes visible at a place does so for all who come by in a part that counts."""
    places: dict[tuple[str, int, MemberId], set[MemberId]] = {}
    shown: dict[tuple[int, MemberId], dict[MemberId, set[Place]]] = {}
    first: dict[tuple[int, MemberId, Place], Visible] = {}
    for event in trace.events:
        if isinstance(event, Stood):
            places.setdefault((event.view, event.timestamp, event.sender), set()).add(event.stream)
        elif isinstance(event, Visible):
            shown.setdefault((event.timestamp, event.sender), {}).setdefault(event.stream, set()).add(event.proposal)
            first.setdefault((event.timestamp, event.sender, event.proposal), event)
    earlier = _earlier(trace)
    for (_, timestamp, sender), streams in places.items():
        seen = shown.get((timestamp, sender), {})
        for proposal in set().union(*seen.values()):
            for stream in sorted(streams):
                if proposal not in seen.get(stream, ()) and (stream, proposal) not in earlier:
                    event = first[timestamp, sender, proposal]
                    return _violation("19b same decisions", stream, "it is not visible here at that place", event)
    return None


def _earlier(trace: TransactionTrace) -> set[tuple[MemberId, Place]]:
    return {(event.stream, event.proposal) for event in trace.events if isinstance(event, Visible)}


def nothing_told_is_lost(trace: TransactionTrace) -> Violation | None:
    """19c. What an application was told is visible is known wherever a part of the group counts later."""
    versions = _versions(trace)
    chosen = {versions.get(event.proposal): event.proposal for event in trace.events if isinstance(event, Visible)}
    told: list[Told] = []
    for event in trace.events:
        if isinstance(event, Told):
            told.append(event)
        elif isinstance(event, Counts):
            for each in told:
                app, version = each.version
                known = any(version <= other for name, other in event.committed if name == app)
                if event.era > each.era and not known and chosen.get(each.version) not in event.candidates:
                    return _violation("19c nothing told is lost", event.stream, f"{app}/{version}", each, event)
    return None


def what_is_told_is_visible(trace: TransactionTrace) -> Violation | None:
    """19c. And its rows are: at whoever told, and in every stream that has the proposal and goes on without a break."""
    versions = _versions(trace)
    shown = {versions.get(event.proposal) for event in trace.events if isinstance(event, Visible)}
    for event in trace.events:
        if isinstance(event, Told) and event.version not in shown:
            return _violation("19c what is told is visible", MemberId(0), "nobody has its rows", event)
    return _seen_by_all_who_have_it(trace)


@dataclass(slots=True)
class _Stream:
    pending: dict[Place, Proposal]
    seen: set[Place]


def _seen_by_all_who_have_it(trace: TransactionTrace) -> Violation | None:
    chosen = {event.proposal for event in trace.events if isinstance(event, Visible)}
    streams: dict[MemberId, _Stream] = {}
    for event in trace.events:
        stream = streams.setdefault(_stream_of(event), _Stream({}, set()))
        match event:
            case Proposal() if event.taken:
                stream.pending[event.place] = event
            case Visible():
                stream.seen.add(event.proposal)
            case Met():
                # What the others decided meanwhile is on their branch.
                stream.pending.clear()
            case Counts():
                for place, proposal in stream.pending.items():
                    app, version = proposal.version
                    known = any(name == app and version <= other for name, other in event.committed)
                    if known and place in chosen and place not in stream.seen:
                        return _violation(
                            "19c what is told is visible", event.stream, "committed, and never visible", proposal, event
                        )
    return None


def rows_come_first(trace: TransactionTrace) -> Violation | None:
    """19d. Where a visible transaction's proposal is in a stream and was sound there, all its rows are there before it.

    It may be sound elsewhere only: of senders that were gone, others may have had more at the end of the same view.
    """
    visible = {(event.stream, event.proposal) for event in trace.events if isinstance(event, Visible)}
    begun: dict[MemberId, int] = {}
    for number, event in enumerate(trace.events):
        if isinstance(event, Begun):
            begun[event.stream] = event.timestamp
        elif isinstance(event, Proposal) and event.taken and (event.stream, event.place) in visible:
            rows = trace.rows.get(event.stream, {})
            for sender, _, last, timestamp in event.rows:
                there = rows.get((sender, last))
                if timestamp > begun.get(event.stream, 0) and (there is None or there > number):
                    return _violation("19d rows come first", event.stream, f"{sender:016x} up to {last}", event)
    return None


def commits_end(trace: TransactionTrace) -> Violation | None:
    """19e. Once all is quiet and a majority of the voters is there, no transaction stays under way."""
    for event in trace.events:
        if isinstance(event, Unended):
            return _violation("19e commits end", MemberId(0), f"{event.version} at {event.site}", event)
    return None


def replay_is_the_same(trace: TransactionTrace) -> Violation | None:
    """19f. Who reads a log, from its beginning or from a checkpoint, comes to what its member knew."""
    for event in trace.events:
        if isinstance(event, Replayed) and (event.ledger != event.live or event.decisions != event.shown):
            return _violation("19f replay", event.stream, "a reader of the log knows something else", event)
    return None


TRANSACTION_CHECKERS: tuple[TransactionChecker, ...] = (
    one_outcome,
    same_ledger,
    same_decisions,
    nothing_told_is_lost,
    what_is_told_is_visible,
    rows_come_first,
    commits_end,
    replay_is_the_same,
)


def check_transactions(trace: TransactionTrace) -> list[Violation]:
    """The first violation of every part that a trace breaks."""
    return [violation for checker in TRANSACTION_CHECKERS if (violation := checker(trace)) is not None]


def _stream_of(event: Event) -> MemberId:
    return MemberId(0) if isinstance(event, Told | Unended) else event.stream


def _versions(trace: TransactionTrace) -> dict[Place, Version]:
    return {event.place: event.version for event in trace.events if isinstance(event, Proposal)}


def _violation(name: str, member: MemberId, detail: str, *events: Event) -> Violation:
    shown = "".join(f"\n    {event}" for event in events)
    return Violation(property=name, member=member, detail=f"{detail}{shown}", events=())
