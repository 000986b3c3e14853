"""Lets a site fail while applications commit, and holds all logs to what the commits returned.

python -m tests.integration.commit_failures --first 0 --seeds 20
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.errors import IntergroupError
from tests.integration.agents import until
from tests.integration.groups import a_group_name
from tests.integration.host_members import ON_HOSTS
from tests.integration.host_sites import HostSites, host_sites
from tests.integration.seeds import Story, play_seeds
from tests.integration.transactions import Writer, a_client, visible

SITES = ("anna", "bert", "carl")
APPS = ("ada", "bob")
FAULTS = ("kill", "lose", "stop", "part")
MOST_DELAY_SECONDS = 0.7
"""Into the commits, at the latest, a site fails."""
AFTERWARDS_SECONDS = 1.0
"""For which it goes on when all are there again."""
FAULT_SECONDS = (0.3, 3.0)
"""For how long it is away: shorter and longer than it takes the others to go on without it."""
COMMIT_SECONDS = 6.0
TRIES = 12


@dataclass
class Outcomes:
    """What commits returned, by application and version."""

    made: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    """Rows that a commit said to have made visible."""
    found: set[tuple[str, int]] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0


class Application(threading.Thread):
    """Commits version after version; after an error a new run of it tries again, perhaps at another site."""

    def __init__(self, failure: Failure, app: str, seed: int) -> None:
        super().__init__(name=app)
        self._failure = failure
        self._app = app
        self._rng = Random(seed)
        self._writer: Writer | None = None
        self._tried = 0
        self.version = 0
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._failure.over.is_set():
                self.commit()
        except BaseException as error:
            self.failed = error
        finally:
            self.end()

    def commit(self) -> None:
        """The next version, as often as it takes."""
        outcomes = self._failure.outcomes
        began = time.monotonic()
        for _ in range(TRIES):
            self._tried += 1
            row = b"%s:%d:%d" % (self._app.encode(), self.version, self._tried)
            try:
                writer = self._writer = self._writer or self._begin()
                made = writer.commit(self.version, writer.stage(self.version, [row]), seconds=COMMIT_SECONDS)
            except (IntergroupError, TimeoutError, OSError) as error:
                outcomes.errors[type(error).__name__] += 1
                self.end()
                self._failure.over.wait(self._rng.uniform(0, 0.3))
                continue
            key = self._app, self.version
            outcomes.longest = max(outcomes.longest, time.monotonic() - began)
            if made:
                assert key not in outcomes.made, f"{key} was made visible twice"
                outcomes.made[key] = [row]
            else:
                outcomes.found.add(key)
            self.version += 1
            return
        raise AssertionError(f"{self._app}/{self.version} was not committed in {TRIES} tries: {outcomes.errors}")

    def _begin(self) -> Writer:
        return Writer(self._failure.client(self._rng.choice(SITES)), self._app)

    def end(self) -> None:
        if self._writer is not None:
            with suppress(IntergroupError, OSError):
                self._writer.client.close()
            self._writer = None


class Failure:
    """One seed: three sites, of which one fails and comes back."""

    def __init__(self, sites: HostSites, seed: int) -> None:
        self._rng = Random(seed)
        self._sites = sites
        self._group = a_group_name()
        self.outcomes = Outcomes()
        self.over = threading.Event()
        self._fault = self._rng.choice(FAULTS)
        self._victim = self._rng.choice(SITES)

    def client(self, name: str) -> TransactionClient:
        return a_client(self._group, self._sites.home(name), name, ON_HOSTS)

    def run(self) -> str:
        holding = {name: self._holding(name) for name in SITES}
        applications = [Application(self, app, self._rng.getrandbits(32)) for app in APPS]
        for application in applications:
            application.start()
        try:
            time.sleep(self._rng.uniform(0, MOST_DELAY_SECONDS))
            self._fail(holding)
            time.sleep(AFTERWARDS_SECONDS)
        finally:
            self.over.set()
            for application in applications:
                application.join()
        for application in applications:
            if application.failed is not None:
                raise application.failed
            application.commit()
            application.end()
        self._check({application.name: application.version for application in applications})
        for client in holding.values():
            client.close()
        known = self.outcomes
        versions = ", ".join(f"{application.version} of {application.name}" for application in applications)
        errors = ", ".join(f"{count} {name}" for name, count in sorted(known.errors.items())) or "no errors"
        found = f"{len(known.found)} found, longest {known.longest:.1f} s; {errors}"
        return f"{self._fault} {self._victim}: {versions}, {found}"

    def _holding(self, name: str) -> TransactionClient:
        """One that stays, so that its site goes on to hold the log."""
        client = self.client(name)
        client.stage(None, plain_rows([name.encode()]))
        client.staged("delivered", 10.0)
        return client

    def _fail(self, holding: dict[str, TransactionClient]) -> None:
        seconds = self._rng.uniform(*FAULT_SECONDS)
        sites, victim = self._sites, self._victim
        match self._fault:
            case "kill" | "lose":
                (sites.kill if self._fault == "kill" else sites.lose)(victim)
                time.sleep(seconds)
                sites.start(victim)
                holding[victim].close()
                holding[victim] = self._holding(victim)
            case "stop":
                sites.signal(victim, signal.SIGSTOP)
                time.sleep(seconds)
                sites.signal(victim, signal.SIGCONT)
            case "part":
                sites.part([name for name in SITES if name != victim], [victim])
                time.sleep(seconds)
                sites.join()

    def _check(self, versions: dict[str, int]) -> None:
        seen = {name: self._seen_at(name, versions) for name in SITES}
        rows = {key: value for shown in seen.values() for key, value in shown.items()}
        wanted = {(app, version) for app, stop in versions.items() for version in range(stop)}
        assert set(rows) == wanted, (wanted - set(rows), set(rows) - wanted)
        for name, shown in seen.items():
            different = {key: (value, rows[key]) for key, value in shown.items() if value != rows[key]}
            assert not different, (name, different)
            if name != self._victim:
                assert set(shown) == wanted, (name, wanted - set(shown))
        for key, made in self.outcomes.made.items():
            assert rows[key] == made, (key, rows[key], made)

    def _seen_at(self, name: str, versions: dict[str, int]) -> dict[tuple[str, int], list[bytes]]:
        """What a site's logs show, once they show the last versions."""
        home, last = self._sites.home(name), {(app, stop - 1) for app, stop in versions.items()}

        def is_complete() -> bool:
            return last <= {_key(rows) for rows in visible(home, self._group)}

        until(is_complete, lambda: (name, last, visible(home, self._group)[-4:]))
        shown = visible(home, self._group)
        keys = [_key(rows) for rows in shown]
        assert len(keys) == len(set(keys)), (name, Counter(keys).most_common(2))
        for app in APPS:
            ascending = [version for of, version in keys if of == app]
            assert ascending == sorted(ascending), (name, app, ascending)
        return dict(zip(keys, shown, strict=True))


def _key(rows: Sequence[bytes]) -> tuple[str, int]:
    (row,) = rows
    app, version, _ = row.decode().split(":")
    return app, int(version)


@contextmanager
def failures() -> Iterator[Story]:
    with host_sites(*SITES) as sites:
        yield lambda seed: Failure(sites, seed).run()


def main(arguments: Sequence[str] | None = None) -> int:
    about = "Let sites fail while applications commit."
    return play_seeds("tests.integration.commit_failures", about, failures, arguments)


if __name__ == "__main__":
    sys.exit(main())
