"""The members that an agent runs, and the control processes that speak for them."""

from __future__ import annotations

from collections.abc import Callable

from intergroup_core.client.directories import SiteDirectories
from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.ids import Service
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.log_archive import LogArchive
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.site import Network, SiteRunner, network_of


class Members:
    """They share the site's clock and, one of each group, its control process."""

    def __init__(self, name: str, directories: SiteDirectories, clock: HybridClock) -> None:
        self._name = name
        self._directories = directories
        self._clock = clock
        self._runners: dict[Network, SiteRunner] = {}
        self._taken: set[tuple[Network, str]] = set()

    def close(self) -> None:
        for runner in self._runners.values():
            runner.close()

    def open(
        self,
        group: str,
        service: Service,
        name: str,
        config: Config,
        *,
        sender: bool,
        log: MemberLog | None = None,
        archive: LogArchive | None = None,
        ledger: bytes = b"",
        on_event: Callable[[Event], None] | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> Member:
        """A site speaks for one member of a group in the hierarchy; a second one there speaks for itself."""
        network = network_of(config)
        taken = (network, group)
        own = taken in self._taken
        if own:
            runner = SiteRunner(name, self._directories.state, clock=self._clock)
        elif (found := self._runners.get(network)) is not None:
            runner = found
        else:
            runner = self._runners[network] = SiteRunner(self._name, self._directories.state, clock=self._clock)

        def closed() -> None:
            if own:
                runner.close()
            else:
                self._taken.discard(taken)
            if on_closed is not None:
                on_closed()

        try:
            member = runner.open(
                group=group,
                service=service,
                config=config,
                sender=sender,
                name=name,
                on_event=on_event or _nothing,
                on_closed=closed,
                log=log,
                archive=archive,
                ledger=ledger,
            )
        except BaseException:
            if own:
                runner.close()
            raise
        self._taken.add(taken)
        return member


def _nothing(event: Event) -> None:
    """The log has it; who wants it reads it there."""
