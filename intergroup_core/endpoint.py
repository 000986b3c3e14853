"""One group member: routes stimuli between the way of data and the membership protocol, and gathers their effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.counters import Counters
from intergroup_core.datapath.engines import Beginning
from intergroup_core.datapath.making import PathMaker
from intergroup_core.datapath.observed import Observed
from intergroup_core.datapath.path import DataPath
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.outbox import Outbox, Records
from intergroup_core.delivery.undurable import Undurable
from intergroup_core.effects import Counted, Effect, Gap, Install, Left, Multicast, Outcome, SendRoom, Suspect
from intergroup_core.errors import LocalProtocolError, NoQuorum
from intergroup_core.ids import Instant, MemberId, Service, View, ViewId, group_tag
from intergroup_core.membership.process import Membership
from intergroup_core.membership.quorum import Quorum, QuorumRecord
from intergroup_core.membership.states import State
from intergroup_core.multicast.archive import Archive
from intergroup_core.ports import Control, Distances
from intergroup_core.timers import earliest
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.restating import Restating
from intergroup_core.wire.control import encode_control
from intergroup_core.wire.fields import MAX_TEXT
from intergroup_core.wire.header import MAX_STORED_BYTES
from intergroup_core.wire.hierarchy import HIERARCHY_MESSAGES
from intergroup_core.wire.keeping import KEEPING_MESSAGES
from intergroup_core.wire.membership import Farewell, MembershipMessage, Peer
from intergroup_core.wire.messages import KeepAlive, Place, RepairRequest, Report
from intergroup_core.wire.parse import Arrival, parse
from intergroup_core.wire.records import Payload
from intergroup_core.wire.run import Run
from intergroup_core.wire.statements import Statement, encode_statement

MILLISECOND = 1_000_000
_ELSEWHERE = HIERARCHY_MESSAGES + KEEPING_MESSAGES
"""What has addresses and tags of its own, and no place in a group's traffic."""


class Endpoint(Observed):
    """A member of one group: in a view that is given and stays, or, without one, in whatever views the group has.

    A `uu` receiver takes part in nothing: it delivers what arrives.
    """

    def __init__(
        self,
        *,
        me: MemberId,
        name: str,
        group: str,
        service: Service,
        config: Config,
        clock: HybridClock,
        distances: Distances,
        rng: Random,
        view: View | None = None,
        counted: frozenset[MemberId] = frozenset(),
        activations: Mapping[MemberId, int] | None = None,
        sources: frozenset[MemberId] | None = None,
        recovered: Callable[[MemberId, int, int], None] | None = None,
        sender: bool = False,
        site: str = "",
        record: bytes | None = None,
        control: Control | None = None,
        logged: bool = False,
        archive: Archive | None = None,
        ledger: bytes = b"",
    ) -> None:
        for what, text in (("name", name), ("site", site)):
            if len(text.encode()) > MAX_TEXT:
                raise LocalProtocolError(
                    f"the {what} {text[:16]!r}... of a member of group {group} has {len(text.encode())} bytes; "
                    f"at most {MAX_TEXT} are possible"
                )
        self.me, self.name, self.group, self.service = me, name, group, service
        self.counters = Counters()
        self._fixed = view
        self._counted = counted
        self._config = config
        self._clock = clock
        self._rng = rng
        self._sources = sources
        self._tag = group_tag(group)
        self._effects = Outcome()
        self._congested = False
        """Whether the shell holds what the network refused, whatever path that came from."""
        self._outbox = Outbox(config.send.queue_bytes, config.group.max_message_bytes)
        self._wants_to_send = sender
        self._stays = False
        self._site = site
        self._control = control
        self._record = record
        self.ledger = Ledger()
        """What ordered statements said so far."""
        self.ledger.learn(ledger)
        self._restating = Restating(self.ledger)
        self._undurable = Undurable() if logged and service is not Service.UU else None
        self._paths = PathMaker(
            tag=self._tag,
            service=service,
            config=config,
            clock=clock,
            distances=distances,
            rng=rng,
            counters=self.counters,
            effects=self._effects,
            chosen=sources,
            outbox=self._outbox,
            control=control,
            undurable=self._undurable,
            archive=archive,
            recovered=recovered,
            ledger=self.ledger,
        )
        self._told_counted = False
        self.beginning: Beginning | None = None
        """Where the stream of this incarnation starts, once that is known; in a view that stays it is the view."""
        self._membership: Membership | None = None
        self._path = self._unbound_path() if view is None else self._path_in(view, activations or {})

    # Where the data goes

    def _make_path(self, beginning: Beginning, *, sends: bool, live: bool) -> DataPath:
        membership = self._membership
        path = self._paths.path(
            self.me,
            beginning,
            sends=sends,
            live=live,
            changed=membership.changed if membership is not None else None,
            held_back=membership.held_back if membership is not None else None,
        )
        path.congested(self._congested)
        return path

    def _path_in(self, view: View, activations: Mapping[MemberId, int]) -> DataPath:
        """The way of data in a view that stays."""
        points = dict.fromkeys(view.members, 1) | dict(activations)
        if self._sources is not None and (
            self.service is not Service.RSO or not self._sources or not self._sources <= points.keys()
        ):
            raise LocalProtocolError(
                f"member {self.name} of group {self.group} chose sources; that needs rso and senders of the view"
            )
        start = int(view.id.start)
        beginning = Beginning(
            view_tag=view.id.tag,
            position=start,
            activations=points,
            promises=dict.fromkeys(points, start),
            counted=self._counted,
        )
        return self._make_path(beginning, sends=self.me in view.members, live=False)

    def _unbound_path(self) -> DataPath | None:
        """A `uu` receiver needs no view; anybody else waits for one."""
        if self.service is not Service.UU:
            return None
        nowhere = Beginning(view_tag=0, position=0, activations={}, promises={}, counted=frozenset())
        return self._make_path(nowhere, sends=False, live=False)

    def _begin(
        self,
        activations: Mapping[MemberId, int],
        promises: Mapping[MemberId, int],
        position: int,
        epoch: ViewId,
        counted: frozenset[MemberId],
        now: Instant,
    ) -> DataPath:
        """The membership protocol knows where this member's stream starts."""
        beginning = Beginning(
            view_tag=epoch.tag, position=position, activations=activations, promises=promises, counted=counted
        )
        self.beginning = beginning
        self._path = self._make_path(beginning, sends=self.me in activations, live=True)
        self._path.reports.name = self.name
        self._path.start(now)
        return self._path

    def _start_membership(self, *, sender: bool, now: Instant) -> None:
        record = QuorumRecord.from_bytes(self._record) if self._record else None
        self._membership = Membership(
            me=Peer(self.me, self.name, self._site),
            config=self._config.membership,
            clock_bound_ns=round(self._config.group.clock_bound_ms * MILLISECOND),
            quorum=Quorum(self._config.group.quorum, record or QuorumRecord()),
            counters=self.counters,
            rng=self._rng,
            say=self._say,
            emit=self._emit,
            clock=lambda: self._clock.last,
            observe=self._clock.observe,
            stamp=lambda at: self._clock.stamp(1, at),
            begin=self._begin,
            reborn=self._reborn,
            has_unsent=lambda: bool(self._outbox),
        )
        self._membership.stays = self._stays
        self._membership.start(sender=sender, now=now)

    def _say(self, message: MembershipMessage) -> None:
        kind, body = encode_control(message)
        if len(body) > MAX_STORED_BYTES - HEADER_BYTES:
            self.counters.drop("too large to say")
            return
        tag = self._path.view_tag if self._path is not None else 0
        frame = self._paths.frames(self.me, tag).single(kind, 0, 0, body)
        self.counters.membership_sent += 1
        self.counters.membership_bytes_sent += len(frame)
        self._effects.append(Multicast(frame, len(frame)))

    def _emit(self, effect: Effect) -> None:
        """What the membership protocol brings about; of views the ledger has to know at their place."""
        self._effects.append(self._restating.enter(effect) if isinstance(effect, Install) else effect)

    def _reborn(self, reason: str, now: Instant) -> Peer:
        """A new incarnation of this member: nothing of the old one binds it (M5)."""
        unsure = self._path.undelivered if self._path is not None else 0
        self.me = MemberId(self._rng.getrandbits(64) or 1)
        self._path = self._unbound_path()
        if self._control is not None:
            self._control.withdraw()
        self._told_counted = False
        if self._undurable is not None:
            self._undurable.forget()
        self._restating.leave_stream()
        self._effects.append(Gap(reason, self.me, unsure))
        return Peer(self.me, self.name, self._site)

    def hasten(self, early: Callable[[Sequence[Effect]], None]) -> None:
        """Have what others wait for carried out from within a stimulus, before the rest of it is worked out."""
        self._effects.early = early

    # Stimuli

    def start(self, now: Instant) -> list[Effect]:
        """Begin in the given view, or look for the group; a sender speaks at once, for its silence would block (M2)."""
        if self._path is not None:
            self._path.start(now)
        if self._fixed is not None:
            self._effects.append(Install(self._fixed))
        elif self._wants_to_send or self.service is not Service.UU:
            self._start_membership(sender=self._wants_to_send, now=now)
        return self.tick(now)

    def receive(self, arrival: Arrival, now: Instant) -> list[Effect]:
        """Datagrams from the network, checked here."""
        for parsed in parse(arrival, self._tag, self.counters):
            match parsed:
                case Run():
                    self._receive_run(parsed, now)
                case KeepAlive():
                    self._receive_keepalive(parsed, now)
                case RepairRequest():
                    self._receive_request(parsed, now)
                case Report():
                    self._receive_report(parsed, now)
                case _ if isinstance(parsed, _ELSEWHERE):
                    self.counters.drop("type")
                case _:
                    self._receive_membership(parsed, now)
        if self._membership is not None:
            self._membership.progressed(now)
        return self._settle(now)

    def send(self, records: Records, now: Instant) -> list[Effect]:
        """Records for the group: all are taken, or none and the error says why."""
        self._check_sending()
        self._outbox.offer(records)
        return self._send_offered(now)

    def send_messages(self, messages: Sequence[tuple[Payload, int]], now: Instant) -> list[Effect]:
        """The same of messages that are made already, each with the number of its records."""
        self._check_sending()
        self._outbox.offer_messages(messages)
        return self._send_offered(now)

    def declare(self, statement: Statement, now: Instant) -> list[Effect]:
        """A statement for the other members, ordered as what is sent before and after it."""
        self._check_sending()
        self._outbox.offer_message(encode_statement(self._restating.worded(statement, self._clock.last)))
        return self._send_offered(now)

    def become_sender(self, now: Instant) -> list[Effect]:
        """Be among the senders soon, as one comes to be who sends; nothing for one that leaves."""
        membership = self._membership
        if membership is not None and (membership.is_leaving or membership.state is State.LEFT):
            return []
        return self._send_offered(now)

    def stay(self, stays: bool, now: Instant) -> list[Effect]:
        """Whether somebody will send again: then a sender is not left out for its silence."""
        self._stays = stays
        if self._membership is not None:
            self._membership.stays = stays
        return self._settle(now)

    def _send_offered(self, now: Instant) -> list[Effect]:
        if self._fixed is None:
            if self._membership is None:
                self._start_membership(sender=True, now=now)
            self._membership.want_to_send(now)  # type: ignore[union-attr]
        return self._settle(now)

    def _check_sending(self) -> None:
        if self._fixed is not None:
            if not self.is_sender:
                raise LocalProtocolError(
                    f"member {self.name} only receives from group {self.group}; join it as a sender"
                )
            return
        if self._membership is not None and (self._membership.is_leaving or self._membership.state is State.LEFT):
            raise LocalProtocolError(f"member {self.name} has left group {self.group}; join it again to send")
        membership = self._membership
        if membership is not None and membership.state is State.SENDER and not membership.standing.quorum.may_send:
            raise NoQuorum(
                f"this component of group {self.group} has {len(membership.standing.senders)} sending sites, which is "
                f"no quorum ({self._config.group.quorum}): wait until it meets the others again"
            )

    def leave(self, now: Instant) -> list[Effect]:
        """Leave the group for good; what was accepted is sent first."""
        if self._membership is not None:
            self._membership.leave("left", now)
        else:
            self._effects.append(Left("left"))
        return self._settle(now)

    def tick(self, now: Instant) -> list[Effect]:
        """Time has passed."""
        path, membership = self._path, self._membership
        if path is not None:
            if membership is not None and membership.stood_still(now):
                path.forgive(now)
            for suspect in path.recover(now):
                self._effects.append(suspect)
                if membership is not None:
                    membership.unanswered(suspect.member, suspect.seq, now)
        if membership is not None:
            membership.tick(now)
            if self._path is not None and self._path.sender is None and self._path.lacks_what_is_gone(now):
                membership.left_behind(now)
            if self._path is not None:
                self._forget_silent(self._path, now)
        return self._settle(now)

    def _forget_silent(self, path: DataPath, now: Instant) -> None:
        """Receivers that say nothing hold nobody back for long; they are named."""
        for receiver in path.forget_silent(now):
            self._effects.append(Suspect(receiver, "this receiver is silent and is not waited for", 0))

    def room(self, free_bytes: int, now: Instant) -> list[Effect]:
        """How much delivered data the application side still takes."""
        if self._path is not None:
            self._path.room(free_bytes, now)
        return self._settle(now)

    def appended(self, deliveries: int, now: Instant) -> list[Effect]:
        """So many more of the chunks delivered, in their order, are durable in this member's log."""
        if self._undurable is not None:
            self._undurable.appended(deliveries)
        return self._settle(now)

    def congested(self, now: Instant) -> None:
        """The network took no more; what was stamped is with the shell, in order."""
        self._congested = True
        if self._path is not None:
            self._path.congested(True)

    def writable(self, now: Instant) -> list[Effect]:
        """The network takes data again."""
        self._congested = False
        if self._path is not None:
            self._path.congested(False)
        return self._settle(now)

    def next_deadline(self) -> int | None:
        """When tick is wanted next, in monotonic nanoseconds."""
        membership = self._membership
        if membership is not None and membership.state is State.LEFT:
            return None
        deadline = self._path.next_deadline() if self._path is not None else None
        return deadline if membership is None else earliest(deadline, membership.next_deadline())

    # Receiving

    def _receive_run(self, run: Run, now: Instant) -> None:
        path, membership = self._path, self._membership
        known = path is not None and path.receive_run(run, now)
        if membership is None or run.source == self.me:
            return
        if known:
            if not run.repaired:
                membership.heard(run.source, now)
        elif membership.stranger(run.source, run.view_tag, run.last_timestamp, now) and self._path is not None:
            self._path.hold(run)

    def _receive_keepalive(self, keepalive: KeepAlive, now: Instant) -> None:
        path, membership = self._path, self._membership
        known = path is not None and path.receive_keepalive(keepalive, now)
        if membership is None or keepalive.source == self.me:
            return
        if known:
            if not keepalive.repaired:
                membership.heard(keepalive.source, now)
        elif membership.stranger(keepalive.source, keepalive.view_tag, keepalive.timestamp, now) and path is not None:
            path.hold_keepalive(keepalive)

    def _receive_request(self, request: RepairRequest, now: Instant) -> None:
        path = self._path
        if request.requester == self.me or path is None or not path.follows:
            return
        self._placed(request.requester, request.place)
        if self._fixed is not None:
            if request.requester not in self._counted:
                self.counters.drop("member")
                return
            if request.view_tag != path.view_tag:
                self.counters.drop("view")
                return
        path.receive_request(request, now)

    def _receive_report(self, report: Report, now: Instant) -> None:
        path, membership = self._path, self._membership
        if report.member == self.me or path is None or not path.follows:
            return
        if report.live is not None:
            self._placed(report.member, report.live.place)
        if membership is None:
            if report.member not in self._counted:
                self.counters.drop("member")
            elif report.view_tag != path.view_tag:
                self.counters.drop("view")
            else:
                path.reports.received(report, now.mono)
            return
        if report.view_tag == path.view_tag:
            path.reports.count(report.member, now.mono)
        elif not membership.standing.history.knows(report.view_tag):
            self.counters.drop("view")
            return
        path.reports.received(report, now.mono)

    def _placed(self, member: MemberId, place: Place | None) -> None:
        if place is not None and self._control is not None:
            self._control.placed(member, *place)

    def _receive_membership(self, message: MembershipMessage, now: Instant) -> None:
        if self._membership is None or message.member == self.me:
            return
        match message:
            case Farewell(member=member):
                if self._path is not None:
                    self._path.reports.uncount(member)
            case _:
                self._membership.receive(message, now)

    # What follows from every stimulus

    def _settle(self, now: Instant) -> list[Effect]:
        path, membership = self._path, self._membership
        if membership is not None and membership.state is State.LEFT:
            # Nothing is owed to anybody any more, and nobody is to wait for this member.
            if self._control is not None:
                self._control.withdraw()
        elif path is not None:
            path.settle(now)
            if membership is not None:
                self._attend(path, membership, now)
        elif membership is None or not self._outbox.has_room_again():
            pass
        else:
            self._effects.append(SendRoom(self._outbox.free))
        effects = list(self._effects)
        self._effects.clear()
        return effects

    def _attend(self, path: DataPath, membership: Membership, now: Instant) -> None:
        """What the protocol must know of the data, and the application of the protocol."""
        if path.sender is not None and path.sender.data_at is not None:
            membership.sent_data(path.sender.data_at)
        if path.sender is not None and self.is_sender and (said := self._restating.due(self.me)):
            for statement in said:
                self._outbox.offer_message(encode_statement(statement))
            path.settle(now)
        membership.doubts(path.wild, now)
        membership.go_on_leaving(now)
        if membership.state is State.LEFT:
            return
        counted = path.is_counted(now)
        if counted is not self._told_counted:
            self._told_counted = counted
            self._effects.append(Counted(counted))
