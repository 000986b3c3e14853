"""What this site's logs of `rto` lack in the midst, skipped or damaged: other sites are asked before it counts as lost.

The site's agent fetches it into a part of its own, which stays: a batch that is planned again has the same rows though
the site that had them is gone by then. Where nobody has it and a gap row is given instead, that stays, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from intergroup_core.client.planning import PlanningClient
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.jumps import Jump
from intergroup_core.log.manifest import replace_file, told_name
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.disk import FileDisk

_log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Between two rounds through all sites."""


class MissingRanges:
    """Of one group; sites are asked for `timeout_s` at most."""

    def __init__(self, group: str, timeout_s: float, *, may_lose: bool) -> None:
        self._group = group
        self._timeout_s = timeout_s
        self._may_lose = may_lose
        self._asked = False
        """Whether all others were heard at least once, about what is being asked for."""

    def fetched(
        self, client: PlanningClient, logs: Callable[[], StreamReader], start: OrderCut, stop: OrderCut
    ) -> tuple[Jump, str] | None:
        """Get what is missing between two cuts; None where nothing is any more, or may be, else what and why."""
        deadline = time.monotonic() + self._timeout_s
        said: dict[str, str] = {}
        self._asked = False
        filled: set[OrderCut] = set()
        while jumps := _open(logs(), start, stop):
            first = jumps[0]
            if first.begin not in filled and self._ask(client, first, stop, deadline, said):
                filled.add(first.begin)  # what did not help would not help another time
            elif first.begin not in filled and time.monotonic() + AGAIN_SECONDS < deadline:
                time.sleep(AGAIN_SECONDS)  # a site that comes back does not say so to a planner
            elif not self._may_lose or any(not jump.incarnations for jump in jumps):
                return first, self._why(first, said)
            else:
                for jump in jumps:
                    _log.warning(
                        "group %s: what follows %s is a gap: %s", self._group, jump.begin, self._why(jump, said)
                    )
                    _tell(jump)
        return None

    def got(self, client: PlanningClient, start: OrderCut, stop: OrderCut) -> str | None:
        """Get what lies between two cuts that are not held; None where it is here now, else what others said."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                answer = client.fill(start, stop, max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                return "this site's agent did not get it in time"
            if answer.filled:
                return None
            if time.monotonic() + AGAIN_SECONDS > deadline:
                asked = "; ".join(f"{who}: {why}" for who, why in answer.refused.items())
                return (
                    f"asked for up to {self._timeout_s:g} s, {asked or 'no other site that keeps the group answered'}"
                )
            time.sleep(AGAIN_SECONDS)  # a site that comes back does not say so to a planner

    def _why(self, jump: Jump, said: dict[str, str]) -> str:
        return f"{jump.why}; {self._answers(said)}"

    def _answers(self, said: dict[str, str]) -> str:
        asked = "; ".join(f"{who}: {why}" for who, why in said.items()) or "no other site that keeps the group answered"
        return f"asked for up to {self._timeout_s:g} s, {asked}"

    def _ask(self, client: PlanningClient, jump: Jump, stop: OrderCut, deadline: float, said: dict[str, str]) -> bool:
        """Whether a site had it, and this one has it now."""
        # Up to the first message behind it, so that nothing more can be missing; but that may be too new for others.
        for end in dict.fromkeys(each for each in (jump.end, stop) if each is not None):
            try:
                answer = client.fill(jump.begin, end, max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                if not self._asked:
                    said["this site's agent"] = "it did not get it in time"
                return False
            self._asked = True
            said |= answer.refused
            if answer.filled:
                return True
        return False


def _open(logs: StreamReader, start: OrderCut, stop: OrderCut) -> list[Jump]:
    return [jump for jump in logs.jumps(start, stop) if not jump.told]


def _tell(jump: Jump) -> None:
    """Let a gap be a gap from now on, whoever comes back: rows that were planned must not change."""
    disk = FileDisk(Path(jump.log.where))
    for name in _names(jump):
        replace_file(disk, name, b"")
    disk.sync_names()


def _names(jump: Jump) -> Iterable[str]:
    return (told_name(incarnation) for incarnation in jump.incarnations)
