"""What is known of transactions as a list for msgpack: handed to newcomers, and written where a log can be begun."""

from __future__ import annotations

from typing import Any

from intergroup_core.ids import MemberId
from intergroup_core.transaction.transactions import Application, Open, Pending, Transactions
from intergroup_core.wire.fields import array, integer, member, position, site_key, timestamp, truth
from intergroup_core.wire.labels import MAX_VERSION, application_key


def listed(known: Transactions) -> list[Any]:
    """In an order that depends on nothing but what is known."""
    return [
        known.era,
        known.promised,
        known.established,
        known.gathered,
        sorted(known.awaiting),
        known.settled,
        known.floor,
        sorted(known.voters),
        known.voters_since,
        [_listed_application(key, known.applications[key]) for key in sorted(known.applications)],
        [[*key, *known.opens[key]] for key in sorted(known.opens)],
        [[source, *known.reach[source]] for source in sorted(known.reach)],
        [[*key, *known.recent[key]] for key in sorted(known.recent)],
        *([[[*key, *known.carried[key]] for key in sorted(known.carried)]] if known.carried else ()),
    ]


def _listed_application(key: bytes, application: Application) -> list[Any]:
    runs = [[run, application.runs[run]] for run in sorted(application.runs)]
    pending = application.pending
    stated = [*pending[:-1], sorted(pending.voters)] if pending is not None else None
    decided = list(application.decided) if application.decided is not None else None
    return [key, application.version + 1, decided, application.heard, runs, stated]


def transactions_of(value: Any) -> Transactions:
    """BadBody where a list is none."""
    fields = array(value)
    *fields, carried = fields if len(fields) > 13 else (*fields, [])
    era, promised, established, gathered, awaiting, settled, floor, *rest = array(fields, 13)
    voters, since, applications, opens, reach, recent = rest
    known = Transactions()
    known.era, known.promised = integer(era), integer(promised)
    known.established, known.gathered = truth(established), timestamp(gathered)
    known.awaiting = frozenset(member(each) for each in array(awaiting))
    known.settled, known.floor = timestamp(settled), timestamp(floor)
    known.voters = frozenset(site_key(each) for each in array(voters))
    known.voters_since = timestamp(since)
    known.applications = dict(_application(*array(each, 6)) for each in array(applications))
    known.opens = dict(_open(*array(each, 5)) for each in array(opens))
    known.reach = dict(_reached(*array(each, 3)) for each in array(reach))
    known.recent = dict(_recent(*array(each, 5)) for each in array(recent))
    known.carried = dict(_carried(*array(each, 5)) for each in array(carried))
    return known


def _application(
    key: Any, version: Any, decided: Any, heard: Any, runs: Any, pending: Any
) -> tuple[bytes, Application]:
    return application_key(key), Application(
        runs=dict(_run(*array(each, 2)) for each in array(runs)),
        version=integer(version, MAX_VERSION + 1) - 1,
        decided=position(decided) if decided is not None else None,
        heard=timestamp(heard),
        pending=_pending(*array(pending, 8)) if pending is not None else None,
    )


def _run(run: Any, heard: Any) -> tuple[bytes, int]:
    return application_key(run), timestamp(heard)


def _pending(
    version: Any, proposer: Any, seq: Any, proposed: Any, since: Any, lasting: Any, accepted: Any, voters: Any
) -> Pending:
    return Pending(
        integer(version, MAX_VERSION),
        member(proposer),
        integer(seq),
        timestamp(proposed),
        timestamp(since),
        truth(lasting),
        timestamp(accepted),
        frozenset(site_key(each) for each in array(voters)),
    )


def _open(app: Any, run: Any, version: Any, since: Any, until: Any) -> tuple[tuple[bytes, bytes, int], Open]:
    return (application_key(app), application_key(run), integer(version, MAX_VERSION)), Open(
        timestamp(since), timestamp(until)
    )


def _reached(source: Any, seq: Any, at: Any) -> tuple[MemberId, tuple[int, int]]:
    return member(source), (integer(seq), timestamp(at))


def _recent(
    app: Any, version: Any, at: Any, proposer: Any, seq: Any
) -> tuple[tuple[bytes, int], tuple[int, MemberId, int]]:
    return (application_key(app), integer(version, MAX_VERSION)), (timestamp(at), member(proposer), integer(seq))


def _carried(
    proposer: Any, seq: Any, sender: Any, at: Any, said: Any
) -> tuple[tuple[MemberId, int], tuple[MemberId, int, int]]:
    return (member(proposer), integer(seq)), (member(sender), integer(at), timestamp(said))
