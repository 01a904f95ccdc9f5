"""A film of a terminal: each line drawn once, each picture in its time, nothing of it read as markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pyte

from tests.tutorials.film import LAST_S, SHORTEST_S, Film
from tests.tutorials.recording import COLUMNS, PAGE, PICTURE
from tests.tutorials.steps import Command, Edit, of_page

SVG = "{http://www.w3.org/2000/svg}"


def filmed(*seen: tuple[str, float]) -> ElementTree.Element:
    screen, film = pyte.Screen(40, 4), Film()
    stream = pyte.Stream(screen)
    for text, seconds in seen:
        stream.feed(text)
        film.add(screen)
        film.stay(seconds)
    return ElementTree.fromstring(film.svg(40, 4))


def test_a_line_is_drawn_once_however_many_pictures_it_is_in() -> None:
    film = filmed(("\x1b[1;32m$\x1b[0m a <b> & c\r\n", 1), ("one\r\n", 1), ("two", 1))

    lines = film.findall(f"{SVG}defs/{SVG}g")
    assert ["".join(line.itertext()) for line in lines] == ["$ a <b> & c", "one", "two"]
    assert lines[0][0].get("font-weight") == "bold" and lines[0][1].get("font-weight") is None
    used = [one.get("href") for one in film.iter(f"{SVG}use")]
    assert used == ["#l0", "#l0", "#l1", "#l0", "#l1", "#l2"]


def test_each_picture_begins_in_its_time_and_what_is_too_short_is_left_out() -> None:
    film = filmed(("a", 2), ("b", SHORTEST_S / 2), ("c", 2), ("\x1b[?25l", 2))

    style = film.find(f"{SVG}style")
    assert style is not None and style.text
    seconds = 6 + SHORTEST_S / 2 + LAST_S
    stops = [float(stop) * seconds / 100 for stop in re.findall(r"([\d.]+)%\{", style.text)]
    assert [round(stop, 1) for stop in stops] == [0, 2.0]
    drawn = ["".join(line.itertext()) for line in film.findall(f"{SVG}defs/{SVG}g")]
    assert drawn == ["a", "abc"]


def test_the_recorded_session_is_of_the_tutorial_as_it_is_now() -> None:
    """Each command and each line that one writes stands in it; `make pictures` records it again."""
    seen = "".join(ElementTree.parse(PICTURE).getroot().itertext())
    steps = of_page(PAGE)

    typed = [step.line for step in steps if isinstance(step, Command)]
    added = [
        line for step in steps if isinstance(step, Edit) for line in step.after if line not in step.before
    ]
    assert len(typed) > 10 and [line for line in (*typed, *added) if line[: COLUMNS - 2] not in seen] == []
