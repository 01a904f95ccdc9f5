"""Drawn: plots as inline SVG, for a page that runs nothing; the console's own script draws the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 600, 120


def drawn(at: Sequence[int], plots: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each plot its title, its lowest and highest value, where zero is, and the path of each curve."""
    return [_one(at, plot) for plot in plots]


def _one(at: Sequence[int], plot: Mapping[str, Any]) -> dict[str, Any]:
    known = [value for curve in plot["curves"] for value in curve["values"] if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    span = high - low or 1.0
    width = max(at[-1] - at[0], 1) if at else 1

    def place(moment: int, value: float) -> str:
        x = WIDTH * (moment - at[0]) / width if len(at) > 1 else WIDTH / 2
        return f"{x:.1f} {HEIGHT * (1 - (value - low) / span):.1f}"

    def path(values: Sequence[float | None]) -> Iterator[str]:
        is_down = False
        for moment, value in zip(at, values, strict=True):
            if value is not None:
                # a value between two gaps is a point: a line of no length with round ends
                yield f"L{place(moment, value)}" if is_down else f"M{place(moment, value)}h0"
            is_down = value is not None

    return {
        "title": plot["title"], "low": low, "high": high, "zero": f"{HEIGHT * (1 + low / span):.1f}",
        "curves": [
            {"name": curve["name"], "side": curve["side"], "d": "".join(path(curve["values"]))}
            for curve in plot["curves"]
        ],
    }  # fmt: skip
