"""Draws docs/hierarchy.svg from docs/hierarchy.json, which `make figures` writes.

python docs/hierarchy_figures.py
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WIDTH, HEIGHT = 380, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 44, 42
COLOURS = {"clustered": "#0b6e99", "scattered": "#c4571b"}
DASHES = {"clustered": "", "scattered": ' stroke-dasharray="6 4"'}

Figure = dict[str, Any]
PANELS: list[tuple[str, str, Callable[[Figure], float | None]]] = [
    ("Control messages at rest", "per site and second", lambda found: found["control"]["messages_per_site_s"]),
    ("Control bytes at rest", "per site and second", lambda found: found["control"]["bytes_per_site_s"]),
    ("Stability latency", "seconds, the slowest site", lambda found: found["stability_latency_s"]["max"]),
    ("Settling", "seconds after a third of all sites died", lambda found: found["settling_after_third_s"]),
]


def nice(most: float) -> float:
    """The next round number."""
    power: float = 10 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= most)


def panel(at: int, title: str, unit: str, curves: dict[str, list[tuple[int, float]]], sizes: list[int]) -> list[str]:
    x0, y0 = at % 2 * WIDTH, at // 2 * HEIGHT
    top = nice(1.1 * max(value for curve in curves.values() for _, value in curve))
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: float) -> float:
        return x0 + LEFT + (math.log10(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return y0 + HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    drawn = [
        f'<text x="{x0 + LEFT}" y="{y0 + 20}" class="title">{title}</text>',
        f'<text x="{x0 + LEFT}" y="{y0 + 35}" class="unit">{unit}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        drawn.append(f'<path d="M{x(sizes[0]):.1f} {y(value):.1f}H{x(sizes[-1]):.1f}" class="grid"/>')
        drawn.append(
            f'<text x="{x0 + LEFT - 8}" y="{y(value) + 4:.1f}" class="tick" text-anchor="end">{value:g}</text>'
        )
    drawn += [
        f'<text x="{x(size):.1f}" y="{y(0) + 17:.1f}" class="tick" text-anchor="middle">{size:,}</text>'
        for size in sizes
    ]
    for name, curve in curves.items():
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in curve)
        drawn.append(f'<polyline points="{points}" stroke="{COLOURS[name]}"{DASHES[name]} class="curve"/>')
        drawn += [f'<circle cx="{x(n):.1f}" cy="{y(v):.1f}" r="3.5" fill="{COLOURS[name]}"/>' for n, v in curve]
    return drawn


def picture(figures: list[Figure]) -> str:
    """Four curves over the number of sites."""
    sizes = sorted({found["control"]["sites"] for found in figures})
    drawn = []
    for at, (title, unit, value) in enumerate(PANELS):
        curves: dict[str, list[tuple[int, float]]] = {}
        for found in figures:
            shown = value(found)
            if shown is not None:
                curves.setdefault(found["terrain"], []).append((found["control"]["sites"], shown))
        drawn += panel(at, title, unit, curves, sizes)
    foot = 2 * HEIGHT
    for place, name in enumerate(COLOURS):
        x = LEFT + 210 * place
        drawn.append(f'<path d="M{x} {foot + 14}h34" stroke="{COLOURS[name]}"{DASHES[name]} class="curve"/>')
        drawn.append(f'<text x="{x + 42}" y="{foot + 18}" class="unit">{name} sites</text>')
    drawn.append(
        f'<text x="{2 * WIDTH - RIGHT}" y="{foot + 18}" class="unit" text-anchor="end">over the number of sites</text>'
    )
    style = (
        "text{font-family:Helvetica,Arial,sans-serif;fill:#222}.title{font-size:14px;font-weight:bold}"
        ".unit{font-size:11.5px;fill:#555}.tick{font-size:11px;fill:#555}.grid{stroke:#ddd;fill:none}"
        ".curve{stroke-width:2.2;fill:none}"
    )
    size = f'width="{2 * WIDTH}" height="{foot + 34}" viewBox="0 0 {2 * WIDTH} {foot + 34}"'
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="What the control hierarchy costs">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    figures = json.loads((HERE / "hierarchy.json").read_text())
    (HERE / "hierarchy.svg").write_text(picture(figures))


if __name__ == "__main__":
    main()
