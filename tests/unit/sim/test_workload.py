from __future__ import annotations

from collections.abc import Sequence
from random import Random

from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.workload import SECOND, Application, Workload


class Desk:
    """Takes what an application sends, while it has room."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.taken: list[tuple[int, list[bytes]]] = []
        self.full = False

    def send(self, records: Sequence[bytes]) -> bool:
        if not self.full:
            self.taken.append((self.scheduler.now, list(records)))
        return not self.full

    def application(self, workload: Workload) -> Application:
        return Application(workload, self.scheduler, Random(1), self.send)


def test_an_application_sends_at_its_rate_and_everything_there_is_to_send() -> None:
    desk = Desk()
    desk.application(Workload(rate=50)).start()
    desk.scheduler.run_until(20 * SECOND)
    assert 800 < len(desk.taken) < 1_200
    assert any(len(records) > 1 for _, records in desk.taken)
    assert any(len(records[0]) > 1_000 for _, records in desk.taken)
    assert any(one == other for (one, _), (other, _) in zip(desk.taken, desk.taken[1:], strict=False))


def test_sendings_keep_step_and_pause() -> None:
    desk = Desk()
    desk.application(Workload(step_ns=20_000_000, duty=0.4)).start()
    desk.scheduler.run_until(10 * SECOND)
    assert desk.taken
    assert all(at % 20_000_000 == 0 for at, _ in desk.taken)
    assert all(at % SECOND <= 0.4 * SECOND + 20_000_000 for at, _ in desk.taken)


def test_what_found_no_room_is_sent_first_when_there_is_some() -> None:
    desk = Desk()
    application = desk.application(Workload())
    application.start()
    desk.full = True
    desk.scheduler.run_until(SECOND)
    assert application.blocked
    assert not desk.taken
    desk.full = False
    application.room()
    assert len(desk.taken) == application.blocked


def test_nothing_is_sent_after_the_end() -> None:
    desk = Desk()
    application = desk.application(Workload(answer=1.0))
    application.start()
    application.stop()
    application.delivered()
    desk.scheduler.run_until(SECOND)
    assert desk.taken == []


def test_an_answer_follows_a_delivery() -> None:
    desk = Desk()
    application = desk.application(Workload(answer=1.0, rate=0.001))
    application.delivered()
    desk.scheduler.run_until(1)
    assert len(desk.taken) == 1
