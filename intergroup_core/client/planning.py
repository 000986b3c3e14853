"""What plans reads of a group needs of its site's agent: membership, heads, and the history that leads up to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.fetching import Keeper
from intergroup_core.config import Config
from intergroup_core.errors import ChannelBroken
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut, EntryCut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut


class Head(NamedTuple):
    """Up to where a stream may be planned."""

    cut: Cut | None
    """None before there is anything."""
    upto: int
    """At or below this timestamp nothing more will come behind the cut; 0 in `uu`."""
    waits_for: str = ""
    """What keeps more from being planned, where something is there and this site's agent knows."""


class Filled(NamedTuple):
    """Whether another site had what this one lacks."""

    filled: bool
    refused: dict[str, str]
    """Who was asked in vain, and what they said."""


class PlanningClient:
    """A site's member of one group, held for as long as somebody plans reads of its log; for one thread.

    One that `holds` can plan, and nothing of the log is removed while it is open that lies behind what it says.
    """

    def __init__(
        self,
        group: str,
        service: Service,
        config: Config,
        home: str | PathLike[str] | None = None,
        *,
        timeout: float,
        holds: bool = True,
    ) -> None:
        self.group, self.service = group, service
        self._completing: tuple[Cut, int] | None = None
        """From which cut the history is asked for, and the number of the question that is open."""
        self._reached: Cut | None = None
        deadline = time.monotonic() + timeout
        self._connection = Connection.to_agent(home, idle_s=config.agent.idle_s, advertise=config.agent.advertise)
        try:
            wanted = {
                "group": group,
                "delivery": service.value,
                "sender": False,
                "name": None,
                "config": config.to_mapping(),
            }
            self.part = Path(self._connection.request(Kind.OPEN, wanted, _left(deadline))["path"])
            """The directory of the log that grows; those of the older ones lie beside it."""
            if holds:
                asked = [group, service.value, config.log.slow_reader, service is Service.UU]
                self._number: int = self._connection.request(Kind.SUBSCRIBE, asked, _left(deadline))["handle"]
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._connection.alive

    @property
    def logs(self) -> Path:
        """The directory of all of the site's logs."""
        return self.part.parent.parent.parent

    def head(self, level: str, timeout: float, *, known: Cut | None = None, wait: float = 0.0) -> Head:
        """The head; where it is still the one known, waited for so many seconds."""
        asked = [self._number, level, listed_cut(known) if known is not None else None, wait]
        match self._connection.request(Kind.PLAN, asked, timeout + wait):
            case {"head": head, "upto": int(upto), **more}:
                # An agent that was started by an older version does not say it.
                return Head(cut_of_list(head) if head is not None else None, upto, str(more.get("waits_for", "")))
            case answer:
                raise _misunderstood(answer)

    def earliest(self, timeout: float) -> Cut | None:
        """Before everything that this site or another has; None where nobody has anything."""
        cut = self._connection.request(Kind.EARLIEST, [self._number], timeout)
        return cut_of_list(cut) if cut is not None else None

    def complete(self, cut: Cut, timeout: float, *, enough: Callable[[Cut], bool] = lambda reached: False) -> bool:
        """Until this site has everything from a cut up to the log that grows, fetched from other sites if need be; or
        only up to one that is enough, and then it is not said whether there is more.

        TimeoutError where that takes longer; it goes on meanwhile, and can be asked for again.
        """
        if isinstance(cut, EntryCut):
            return True
        deadline = time.monotonic() + timeout
        if self._completing is None or self._completing[0] != cut:
            self._completing = cut, self._ask_history(cut)
        while True:
            _, number = self._completing
            try:
                answer = self._connection.answer(number, _left(deadline))
            except TimeoutError:
                raise  # the question stays open
            except BaseException:
                self._completing = None
                raise
            self._completing = None
            match answer:
                case {"live": int()}:
                    return True
                case {"reached": reached}:
                    self._reached = cut_of_list(reached)
                    if enough(self._reached):
                        return False
                    self._completing = cut, self._ask_history(self._reached)
                case _:
                    raise _misunderstood(answer)

    @property
    def reached(self) -> Cut | None:
        """Up to where `complete` has come, in logs that do not grow any more; None before it has."""
        return self._reached

    def _ask_history(self, cut: Cut) -> int:
        return self._connection.ask(Kind.HISTORY, [self._number, listed_cut(cut)])

    def fill(self, start: Cut, stop: Cut, timeout: float) -> Filled:
        """Have a range fetched that this site's log skipped or in which it is damaged; once it is here, it stays."""
        match self._connection.request(Kind.FILL, [self._number, listed_cut(start), listed_cut(stop)], timeout):
            case {"filled": bool(filled), "refused": dict(refused)}:
                return Filled(filled, refused)
            case answer:
                raise _misunderstood(answer)

    def hold(self, entry: int, timeout: float) -> None:
        """Nothing is needed any more that lies before an entry of the log that grows."""
        self._connection.request(Kind.HOLD, [self._number, entry], timeout)

    def keepers(self, timeout: float) -> list[Keeper]:
        """Who has something of the group's log, this site first."""
        answer = self._connection.request(Kind.KEEPERS, [self.group, self.service.value], timeout)
        try:
            return [Keeper(str(name), str(host), int(port), bytes(token)) for name, host, port, token in answer]
        except (TypeError, ValueError):
            raise _misunderstood(answer) from None

    def commit(self, subscription: str, cut: Cut, timeout: float) -> None:
        """A named subscription is done with everything up to a cut."""
        self._connection.request(Kind.COMMIT, [self.group, self.service.value, subscription, listed_cut(cut)], timeout)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _misunderstood(answer: Any) -> ChannelBroken:
    return ChannelBroken(f"the agent's answer is not understood: {answer!r:.200}")
