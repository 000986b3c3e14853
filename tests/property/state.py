"""Everything an engine holds, as a flat mapping, so that two moments can be compared whatever its parts are called."""

from __future__ import annotations

from collections import deque
from enum import Enum
from random import Random
from typing import Any

import numpy as np

from intergroup_core.config import Config
from intergroup_core.counters import Counters
from intergroup_core.ids import View

_LEFT_OUT = (Config, Counters, View)
"""Settings do not change, and counts are there to."""


def state_of(thing: object) -> dict[str, Any]:
    """Every value reachable from a thing, by the path to it."""
    found: dict[str, Any] = {}
    _walk(thing, "", found, set())
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    return {path: (before.get(path), after.get(path)) for path in changed[:10]}


def _walk(value: Any, path: str, found: dict[str, Any], inside: set[int]) -> None:
    if value is None or isinstance(value, (int, float, str, bytes, Enum)):
        found[path] = value
    elif isinstance(value, _LEFT_OUT) or callable(value) or id(value) in inside:
        return
    elif isinstance(value, np.ndarray):
        found[path] = (value.shape, hash(value.tobytes()))
    elif isinstance(value, Random):
        found[path] = hash(value.getstate())
    else:
        inside.add(id(value))
        for name, part in _parts(value):
            _walk(part, f"{path}.{name}", found, inside)
        inside.discard(id(value))


def _parts(value: Any) -> list[tuple[object, Any]]:
    if isinstance(value, dict):
        return [("length", len(value)), *value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [("length", len(value)), *enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [("members", repr(sorted(value)))]
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return list({**held, **getattr(value, "__dict__", {})}.items())
