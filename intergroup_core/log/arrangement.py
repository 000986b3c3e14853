"""How the parts of a stream are put together: into stretches in which nothing is missing."""

from __future__ import annotations

from typing import Any

from intergroup_core.log.part import OrderPart, Part
from intergroup_core.log.stretch import OrderStretch, SourceStretch, Stretch


def stretches_of(parts: list[Part[Any]]) -> list[Stretch[Any]]:
    """Parts put together as far as nothing is missing between them; one that has nothing of its own is left out."""
    left = sorted(parts, key=lambda part: part.order)
    for part in list(left):
        if any(_alone(other).covers(part) for other in left if other is not part):
            left.remove(part)
    found: list[Stretch[Any]] = []
    while left:
        first = next((part for part in left if not _follows_any(part, left)), left[0])
        left.remove(first)
        stretch = _alone(first)
        while (at := _continuation(stretch, left)) is not None:
            part = left.pop(at)
            if not stretch.covers(part):
                stretch.add(part)
        left = [part for part in left if not stretch.covers(part)]
        found.append(stretch)
    return sorted(found, key=lambda stretch: stretch.parts[0].order)


def _continuation(stretch: Stretch[Any], parts: list[Part[Any]]) -> int | None:
    return next((at for at, part in enumerate(parts) if stretch.is_continued_by(part)), None)


def _alone(part: Part[Any]) -> Stretch[Any]:
    return OrderStretch(part) if isinstance(part, OrderPart) else SourceStretch(part)


def _follows_any(part: Part[Any], parts: list[Part[Any]]) -> bool:
    """Whether a part continues another one, so that it cannot be where a stretch begins."""
    return any(_alone(other).is_continued_by(part) for other in parts if other is not part)
