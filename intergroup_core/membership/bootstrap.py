"""Finding a group (T5.3.1): the newcomer's calls, and the answers of those who are there."""

from __future__ import annotations

from intergroup_core.ids import Instant, MemberId, timestamp_at, timestamp_span, wall_us
from intergroup_core.membership.standing import MILLISECOND, Standing
from intergroup_core.timers import Timers
from intergroup_core.wire.membership import Solicitation, Sponsorship


class Newcomer:
    """Calls for a sponsor, less and less often while nobody answers."""

    MAX_DOUBLINGS = 5
    """Calls come at intervals up to 32 times the first one."""
    CALM = 4
    """Calls before the intervals begin to grow."""

    FELLOW_CALLS = 4
    """A fellow newcomer not heard for so many of the first intervals is not counted on."""
    MAX_FELLOWS = 256

    def __init__(self, standing: Standing, now: Instant) -> None:
        self._standing = standing
        self._attempt = 0
        self._call_at = now.mono
        self._fellows: dict[MemberId, int] = {}
        self.started = now.mono

    def overheard(self, call: Solicitation, now: Instant) -> None:
        """Another newcomer that wants to send."""
        if call.sends and (call.member in self._fellows or len(self._fellows) < self.MAX_FELLOWS):
            self._fellows[call.member] = now.mono

    def fellows(self, now: Instant) -> list[MemberId]:
        """Newcomers with whom to begin a view, where there is none yet."""
        limit = self.FELLOW_CALLS * self._standing.ns(self._standing.config.bootstrap_retry_ms)
        return [member for member, at in self._fellows.items() if now.mono - at <= limit]

    def next_deadline(self) -> int:
        return self._call_at

    def hurry(self, now: Instant) -> None:
        """Somebody is there."""
        interval = self._standing.ns(self._standing.config.bootstrap_retry_ms)
        self._call_at = min(self._call_at, now.mono + interval)

    def tick(self, now: Instant, *, sends: bool) -> None:
        if now.mono < self._call_at:
            return
        config, standing = self._standing.config, self._standing
        interval = standing.ns(config.bootstrap_retry_ms)
        doublings = min(max(0, self._attempt - self.CALM), self.MAX_DOUBLINGS)
        self._call_at = now.mono + round((interval << doublings) * standing.rng.uniform(0.75, 1.25))
        me = standing.me
        standing.say(
            Solicitation(
                member=me.id,
                name=me.name,
                site=me.site,
                attempt=self._attempt,
                clock=timestamp_at(now.wall),
                sends=sends,
            )
        )
        self._attempt += 1


class Sponsor:
    """Answers newcomers: the sender whose turn it is, or, where no sender is left, a receiver that knows the place.

    Receivers answer after a random time and not at all once somebody else did, for they do not know each other.
    """

    MAX_WAITING = 256
    """Newcomers a receiver keeps in mind to answer; further ones call again."""

    def __init__(self, standing: Standing, clock_bound_ns: int) -> None:
        self._standing = standing
        self._clock_bound = timestamp_span(clock_bound_ns)
        self._waiting: dict[MemberId, Solicitation] = {}
        self._timers: Timers[MemberId] = Timers()

    def next_deadline(self) -> int | None:
        return self._timers.next_deadline()

    def called(self, call: Solicitation, now: Instant) -> None:
        """A newcomer looks for the group, and this member is in it and settled."""
        standing = self._standing
        if standing.path is None or standing.view is None or call.member in standing.roster:
            return
        if standing.senders:
            if standing.sponsor(call.attempt) == standing.me.id:
                self._answer(call, now)
        elif call.member not in self._waiting and len(self._waiting) < self.MAX_WAITING:
            self._waiting[call.member] = call
            delay = standing.rng.uniform(0.0, standing.config.bootstrap_retry_ms / 2)
            self._timers.arm(call.member, now.mono + round(delay * MILLISECOND))

    def answered(self, answer: Sponsorship) -> None:
        """Somebody else was faster."""
        self._forget(answer.newcomer)

    def forget_all(self) -> None:
        for newcomer in list(self._waiting):
            self._forget(newcomer)

    def _forget(self, newcomer: MemberId) -> None:
        self._waiting.pop(newcomer, None)
        self._timers.cancel(newcomer)

    def tick(self, now: Instant) -> None:
        for newcomer in self._timers.pop_due(now.mono):
            call = self._waiting.pop(newcomer, None)
            if call is not None and not self._standing.senders:
                self._answer(call, now)

    def _answer(self, call: Solicitation, now: Instant) -> None:
        standing = self._standing
        assert standing.path is not None
        assert standing.view is not None
        assert standing.epoch is not None
        ahead = call.clock - timestamp_at(now.wall)
        refusal = "clock" if ahead > self._clock_bound else ""
        position, activations, promises = standing.path.sponsored()
        if not refusal:
            standing.path.pin(call.member, now.mono + standing.ns(standing.config.lease_ms))
        standing.say(
            Sponsorship(
                member=standing.me.id,
                newcomer=call.member,
                attempt=call.attempt,
                refusal=refusal,
                ahead_us=wall_us(call.clock) - wall_us(timestamp_at(now.wall)),
                epoch=standing.epoch,
                view=standing.view.id,
                peers=tuple(standing.roster.values()),
                position=position,
                acknowledged=standing.path.acknowledged,
                activations=activations,
                promises=promises,
                departed=tuple(sorted(standing.path.departed.items())),
                primary=standing.quorum.agreed,
                number=standing.quorum.number,
                ledger=standing.path.stated(),
            )
        )
