"""What was seen on a terminal, one picture after another, as an SVG that moves by itself.

Each line of text is drawn once, however many pictures it is in. The pictures stand above each other, and the
one that is due is moved into the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

WIDE, HIGH, SIZE, EDGE = 8.4, 19, 14, 12
"""Pixels: of a cell, of its letters, and around all."""
SHORTEST_S = 0.2
"""What changes again sooner is not seen."""
LAST_S = 4.0
COLOURS = {
    "default": "#d8dee9", "green": "#a3be8c", "red": "#e0808a", "brown": "#ebcb8b", "blue": "#81a1c1",
    "cyan": "#88c0d0", "magenta": "#b48ead", "black": "#7b8494", "white": "#eceff4",
}  # fmt: skip
BACKGROUND = "#2e3440"


@dataclass(frozen=True)
class Part:
    """Letters that look alike, beside each other in a line."""

    at: int
    text: str
    colour: str
    is_bold: bool


_BOLD = ' font-weight="bold"'

Line = tuple[Part, ...]


class Film:
    """Pictures, each with when it begins."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._pictures: list[tuple[float, tuple[Line, ...]]] = []

    def stay(self, seconds: float) -> None:
        """What is seen stays for so long."""
        self.seconds += seconds

    def add(self, screen: Any) -> None:
        """What is seen from now on: a `pyte.Screen`."""
        lines = tuple(tuple(_parts(screen.buffer[row], screen.columns)) for row in range(screen.lines))
        if self._pictures and self.seconds - self._pictures[-1][0] < SHORTEST_S:
            self._pictures[-1] = (self._pictures[-1][0], lines)
        elif not self._pictures or self._pictures[-1][1] != lines:
            self._pictures.append((self.seconds, lines))

    def svg(self, columns: int, rows: int) -> str:
        """The whole film, which begins again after its end."""
        width, height = round(columns * WIDE), rows * HIGH
        drawn: dict[Line, str] = {}
        pictures = []
        for number, (_, lines) in enumerate(self._pictures):
            top = number * height
            uses = (
                f'<use href="#{drawn.setdefault(line, f"l{len(drawn)}")}" y="{top + row * HIGH}"/>'
                for row, line in enumerate(lines)
                if line
            )
            pictures.append("".join(uses))
        texts = "".join(f'<g id="{id}">{_drawn(line)}</g>' for line, id in drawn.items())
        total = self.seconds + LAST_S
        stops = "".join(
            f"{100 * at / total:.3f}%{{transform:translateY({-number * height}px)}}"
            for number, (at, _) in enumerate(self._pictures)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 2 * EDGE} {height + 2 * EDGE}" '
            f'width="{width + 2 * EDGE}" height="{height + 2 * EDGE}">\n'
            f"<style>text{{font:{SIZE}px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}"
            f"@keyframes play{{{stops}}}"
            f".film{{animation:play {total:.1f}s step-end infinite}}</style>\n"
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n<defs>{texts}</defs>\n'
            f'<svg x="{EDGE}" y="{EDGE}" width="{width}" height="{height}"><g class="film">\n'
            + "\n".join(pictures)
            + "\n</g></svg></svg>\n"
        )


def _parts(row: Any, columns: int) -> Iterator[Part]:
    cells = [(at, row[at]) for at in range(columns)]
    while cells and cells[-1][1].data == " ":
        cells.pop()
    for (colour, is_bold), group in groupby(cells, lambda cell: (cell[1].fg, cell[1].bold)):
        same = list(group)
        text = "".join(cell.data for _, cell in same)
        if text.strip():
            yield Part(same[0][0], text, colour, is_bold)


def _drawn(line: Sequence[Part]) -> str:
    return "".join(
        f'<text x="{part.at * WIDE:.1f}" y="{SIZE}" textLength="{len(part.text) * WIDE:.1f}" '
        f'fill="{COLOURS.get(part.colour, f"#{part.colour}")}"{_BOLD if part.is_bold else ""}>'
        f"{escape(part.text)}</text>"
        for part in line
    )
