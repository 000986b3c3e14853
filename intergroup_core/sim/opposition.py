"""An adversary's plans, made from a seed: what it holds back, and what happens meanwhile."""

from __future__ import annotations

from random import Random

from intergroup_core.sim.adversary import AGREEMENT, Link
from intergroup_core.sim.faults import Change, Crash, Fault, Leave, Moment, Oppose, Pause, Restart, Split, StartSending
from intergroup_core.wire.header import FrameType

MILLISECOND = 1_000_000
SECOND = 1_000_000_000

KINDS = (
    (FrameType.READY,), (FrameType.MEMBERSHIP,), (FrameType.READY, FrameType.MEMBERSHIP), (FrameType.JOIN,),
    (FrameType.RECOVERY_INFO,), tuple(sorted(AGREEMENT)), (FrameType.MEMBERSHIP, FrameType.VIEW_REQUEST),
    (FrameType.CHANGE,), (FrameType.CHANGE, FrameType.REPAIR), (FrameType.ADD_REQUEST,), (FrameType.SPONSORSHIP,),
    (FrameType.SOLICITATION,), (FrameType.REPORT,), (FrameType.KEEP_ALIVE,), (FrameType.DATA,),
    (FrameType.DATA, FrameType.REPAIR), (FrameType.REQUEST,), (FrameType.FAREWELL, FrameType.FAILURE_BLOCK),
)  # fmt: skip
"""What an adversary chooses from."""
LATEST_NS = 4 * SECOND
"""The most by which it delays a frame: views have changed since."""
MOMENTS = (
    "consensus", "gather cut", "gather recovery", "recovery", "gather ready", "wait for change", "receiver wait",
    "receiver recovery", "to sender", "to receiver",
)  # fmt: skip
"""States in which members are only for a moment, so that a time drawn at random misses them."""


def opposition(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """One of its plans, beginning and ending at these times."""
    plans = (_choosy, _choosy, _unrecovered, _deaf_to_repair, _lagging, _moment, _moment, _hasty, _hasty)
    return rng.choice(plans)(at, until, seats, rng)


def _choosy(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """Some kinds on some links, and as a rule something that makes members say what is waited for."""
    plan: list[Fault | Change] = [
        Oppose(
            at=at,
            until=until,
            kinds=frozenset(rng.choice(KINDS)),
            links=_some_links(seats, rng),
            chance=rng.choice((1.0, 1.0, 0.7)),
            late_ns=rng.choice((0, 0, rng.randrange(50 * MILLISECOND, LATEST_NS))),
        )
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    return plan + _meanwhile(at, until, seats, rng)


def _meanwhile(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    inside = rng.randrange(at, until)
    member = rng.randrange(seats)
    match rng.randrange(6):
        case 0:
            return [Crash(at=inside, member=member), Restart(at=until + SECOND, member=member)]
        case 1:
            return [Leave(at=inside, member=member), Restart(at=until + SECOND, member=member)]
        case 2:
            short = inside + rng.randrange(100 * MILLISECOND, 3 * SECOND)
            return [Split(at=inside, until=short, parts=parts(seats, 2, rng))]
        case 3:
            short = inside + rng.randrange(500 * MILLISECOND, 3 * SECOND)
            return [Pause(at=inside, until=short, member=member)]
        case 4:
            return [Leave(at=at, member=member), Restart(at=at + (until - at) // 3, member=member)]
        case _:
            return []


def _unrecovered(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """One member misses what another says before it crashes, and cannot get it from anybody for a while."""
    dies, misses = rng.sample(range(seats), 2) if seats > 1 else (0, 0)
    dead_at = at + rng.randrange(50 * MILLISECOND, SECOND)
    to_it = frozenset((one, misses) for one in range(seats) if one != misses)
    plan: list[Fault | Change] = [
        Oppose(at=at, until=dead_at, kinds=frozenset({FrameType.DATA}), links=frozenset({(dies, misses)})),
        Oppose(at=at, until=until + 2 * SECOND, kinds=frozenset({FrameType.REPAIR}), links=to_it),
        Crash(at=dead_at, member=dies),
        Restart(at=until + SECOND, member=dies),
    ]
    if rng.random() < 0.6:
        third = rng.randrange(seats)
        plan.append(Moment(at=dead_at, until=until, member=misses, state="recovery", act="crash", victim=third))
    return plan


def _deaf_to_repair(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """A member, receiver or about to send, hears nothing of a repair but its end."""
    deaf = rng.randrange(seats)
    kinds = frozenset({FrameType.JOIN, FrameType.RECOVERY_INFO, FrameType.READY})
    links = frozenset((one, deaf) for one in range(seats) if one != deaf)
    inside = rng.randrange(at, until)
    plan: list[Fault | Change] = [
        Oppose(at=at, until=until, kinds=kinds, links=links),
        Oppose(at=at, until=until, kinds=frozenset({FrameType.ADD_REQUEST}), links=frozenset(_flipped(links))),
        StartSending(at=max(at, inside - 300 * MILLISECOND), member=deaf),
    ]
    return plan + _meanwhile(at, until, seats, rng)


def _lagging(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """One member does not hear that the others are ready, while somebody comes and goes."""
    lags, moves = rng.randrange(seats), rng.randrange(seats)
    links = frozenset((one, lags) for one in range(seats) if one != lags)
    third = (until - at) // 3
    return [
        Oppose(at=at, until=until, kinds=frozenset({FrameType.REPORT}), links=links),
        Leave(at=at + third // 2, member=moves),
        Restart(at=at + third, member=moves),
        Leave(at=at + 2 * third, member=moves),
        Restart(at=until, member=moves),
    ]


def _moment(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """Somebody goes, stands still or is cut off just when a member enters a state."""
    member = rng.randrange(seats)
    moment = Moment(
        at=at,
        until=until,
        member=member,
        state=rng.choice(MOMENTS),
        act=rng.choice(("crash", "leave", "pause", "apart")),
        victim=rng.choice((member, rng.randrange(seats))),
    )
    return [moment, *_meanwhile(at, until, seats, rng)]


def _hasty(at: int, until: int, seats: int, rng: Random) -> list[Fault | Change]:
    """Somebody has enough of it while it waits: for a sponsor, for its Add, or for the last of a view that ends."""
    goes = rng.randrange(seats)
    others = [seat for seat in range(seats) if seat != goes]
    to_it, from_it = frozenset((one, goes) for one in others), frozenset((goes, one) for one in others)
    back, again = at + (until - at) // 3, until + SECOND
    returns: list[Fault | Change] = [Leave(at=at, member=goes), Restart(at=back, member=goes)]
    match rng.randrange(3):
        case 0:
            unheard = Oppose(at=at, until=until, kinds=frozenset({FrameType.SPONSORSHIP}), links=to_it)
            soon = back + rng.randrange(20 * MILLISECOND, SECOND)
            return [*returns, unheard, Leave(at=soon, member=goes), Restart(at=again, member=goes)]
        case 1:
            unheard = Oppose(at=at, until=until, kinds=frozenset({FrameType.ADD_REQUEST}), links=from_it)
            sends = StartSending(at=back + 50 * MILLISECOND, member=goes)
            soon = back + rng.randrange(100 * MILLISECOND, 2 * SECOND)
            return [*returns, unheard, sends, Leave(at=soon, member=goes), Restart(at=again, member=goes)]
        case _:
            goes, dies = seats - 1, 0  # receivers have the last seats
            to_it = frozenset((one, goes) for one in range(goes))
            gone = Moment(at=at, until=until, member=goes, state="receiver recovery", act="leave", victim=goes)
            dead_at = at + rng.randrange(50 * MILLISECOND, SECOND)
            missed = Oppose(at=at, until=dead_at, kinds=frozenset({FrameType.DATA}), links=frozenset({(dies, goes)}))
            for_ever = Oppose(at=at, until=until, kinds=frozenset({FrameType.REPAIR}), links=to_it)
            return [gone, missed, for_ever, Crash(at=dead_at, member=dies), Restart(at=again, member=dies)]


def _some_links(seats: int, rng: Random) -> frozenset[Link]:
    """From one or some to one, some or all."""
    sources, targets = (frozenset(rng.sample(range(seats), rng.choice((1, 1, (seats + 1) // 2)))) for _ in range(2))
    if rng.random() < 0.3:
        targets = frozenset(range(seats))
    return frozenset((one, other) for one in sources for other in targets if one != other)


def _flipped(links: frozenset[Link]) -> list[Link]:
    return [(other, one) for one, other in links]


def parts(seats: int, count: int, rng: Random) -> tuple[frozenset[int], ...]:
    """The seats in so many parts, none of them empty as far as there are enough."""
    order = rng.sample(range(seats), seats)
    where = [index if index < count else rng.randrange(count) for index in range(seats)]
    return tuple(
        frozenset(seat for seat, part in zip(order, where, strict=True) if part == number) for number in range(count)
    )
