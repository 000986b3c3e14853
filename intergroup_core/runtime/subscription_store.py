"""Named subscriptions of a site: how far each has come, kept beyond the lives of those who read for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from intergroup_core.errors import LogError, StateUnavailable
from intergroup_core.ids import Service, Timestamp
from intergroup_core.log.cut import Cut
from intergroup_core.log.cut_codec import cut_fields, cut_of_fields
from intergroup_core.runtime.home import replace_durably

_PRIVATE = 0o700
FORMAT = 1
MAX_NAME_BYTES = 64
"""Of a subscription: it travels in a datagram."""
MAX_SUBSCRIPTIONS = 10_000
"""At one site; more are refused, for every look at a log's limits goes through them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Everything up to a cut was read and done with."""

    group: str
    service: Service
    name: str
    cut: Cut | None
    """None where it was removed: said so once to other sites, then forgotten."""
    stamp: Timestamp
    """When that was said, in the site's time; the latest word counts."""


class SubscriptionStore:
    """A small file for each, replaced whole."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def all(self) -> list[Subscription]:
        """Those whose file can be read, by group and name."""
        if not self._directory.is_dir():
            return []
        found = [each for path in self._directory.glob("*.json") if (each := _read(path)) is not None]
        return sorted(found, key=lambda each: (each.group, each.service.value, each.name))

    def of(self, group: str, service: Service) -> list[Subscription]:
        return [each for each in self.all() if (each.group, each.service) == (group, service)]

    def get(self, group: str, service: Service, name: str) -> Subscription | None:
        return _read(self._path(group, service, name))

    def put(self, subscription: Subscription) -> bool:
        """Keep it, durably, unless something later was said; whether it was kept."""
        known = self.get(subscription.group, subscription.service, subscription.name)
        if known is not None and known.stamp >= subscription.stamp:
            return False
        path = self._path(subscription.group, subscription.service, subscription.name)
        if subscription.cut is None:
            path.unlink(missing_ok=True)
            return known is not None
        if known is None and len(self.all()) >= MAX_SUBSCRIPTIONS:
            raise StateUnavailable(
                f"this site has {MAX_SUBSCRIPTIONS} subscriptions; remove some with `intergroup subscription rm`"
            )
        content = {
            "format": FORMAT,
            "group": subscription.group,
            "service": subscription.service.value,
            "name": subscription.name,
            "cut": cut_fields(subscription.cut),
            "stamp": subscription.stamp,
        }
        try:
            self._directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            replace_durably(path, json.dumps(content, sort_keys=True).encode() + b"\n")
        except OSError as error:
            raise StateUnavailable(f"cannot write {path} ({error.strerror}); make room or make it writable") from error
        return True

    def _path(self, group: str, service: Service, name: str) -> Path:
        exact = f"{group}\0{service.value}\0{name}".encode(errors="surrogatepass")
        return self._directory / f"{hashlib.blake2b(exact, digest_size=16).hexdigest()}.json"


def _read(path: Path) -> Subscription | None:
    """What a file says; None where it is not there, or not of this format."""
    try:
        fields = json.loads(path.read_bytes())
        if fields["format"] != FORMAT:
            return None
        return Subscription(
            group=str(fields["group"]),
            service=Service(fields["service"]),
            name=str(fields["name"]),
            cut=cut_of_fields(fields["cut"]),
            stamp=Timestamp(int(fields["stamp"])),
        )
    except (OSError, ValueError, KeyError, TypeError, LogError):
        return None
