"""What `twinlake diff --sample --format markdown` prints: a comment for the pull request of a change.

Values come from records that anybody may have produced: every sign that Markdown or HTML knows is written as
an entity, and none of them mentions anybody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from twinlake.base.errors import visible
from twinlake.cli.judged import Judged
from twinlake.cli.release_steps import SHOWN
from twinlake.cli.sample_shown import AFTER, BEFORE, NEW, REMOVED, against, cost, nothing, parts, size
from twinlake.cli.sample_tests import UnitTests

MARKER = "<!-- twinlake diff --sample -->"
"""The first line: who posts the next comment finds this one by it, and replaces it."""
MOST = 60_000
"""So many characters, for GitHub takes 65,536."""
_LONGEST, _LONGEST_SENTENCE = 120, 800
_MOST_LINES, _MOST_COLUMNS, _MOST_TESTS = 20, 6, 5
_LEFT_OUT = "\n\nThe rest is left out: `twinlake diff --sample TABLE` shows it.\n"
_SIGN = re.compile(r"[!#$&*.:<>?@\[\\\]^_`{|}~]")
_RUN = re.compile(r"`+")


def comment(found: Judged, tests: UnitTests) -> str:
    """The whole text."""
    text = f"{MARKER}\n## {_heading(found)}"
    for piece in _pieces(found, tests):
        if len(text) + len(piece) + len(_LEFT_OUT) > MOST:
            return text + _LEFT_OUT
        text += piece
    return f"{text}\n"


def code(value: Any) -> str:
    """A value, cut: GitHub makes no mention and no link of what is code."""
    return f"<code>{_plain(_text(value), _LONGEST)}</code>"


def prose(sentence: str) -> str:
    """A sentence with names, and maybe values, in it; what would be a mention is broken by a sign that nobody
    sees."""
    return re.sub("(&#64;|&#35;)", r"\1&#8203;", _plain(sentence, _LONGEST_SENTENCE))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str, most: int) -> str:
    cut = text if len(text) <= most else f"{text[:most]}…"
    return _SIGN.sub(lambda sign: f"&#{ord(sign[0])};", visible(cut))


def _heading(found: Judged) -> str:
    differ = [one["table"] for one in found.compared if not one["equal"]]
    same = [one["table"] for one in found.compared if one["equal"]]
    named = [
        f"{_named(list(tables))} {words}"
        for tables, words in (
            (differ, "would show other rows"), (same, "the same rows in the sample"),
            (found.refused, "not known"), (found.new, "new"), (found.removed, "gone"),
        ) if tables
    ]  # fmt: skip
    return f"Tables: {'; '.join(named) or prose(nothing(found))}"


def _named(tables: Sequence[str]) -> str:
    more = f" and {len(tables) - _MOST_LINES} more" if len(tables) > _MOST_LINES else ""
    return f"{', '.join(map(code, tables[:_MOST_LINES]))}{more}"


def _pieces(found: Judged, tests: UnitTests) -> Iterator[str]:
    """Each is whole in itself: a comment may end after any of them."""
    for table, why in found.refused.items():
        yield f"\n\n{code(table)}: what it shows is not known: {prose(why)}"
    for table in found.new:
        yield f"\n\n{code(table)}: {NEW}"
    for table in found.removed:
        yield f"\n\n{code(table)}: {REMOVED}"
    yield from _tests(tests)
    for one in found.compared:
        yield from _table(one)


def _tests(tests: UnitTests) -> Iterator[str]:
    if not (tests.passed or tests.failed or tests.waiting):
        return
    failed = f", **{len(tests.failed)} failed**" if tests.failed else ""
    waiting = f", {tests.waiting} not run: only Spark can (`twinlake test`)" if tests.waiting else ""
    yield f"\n\n**Unit tests** of these tables: {tests.passed} passed{failed}{waiting}"
    for title, why in tests.failed[:_MOST_TESTS]:
        lines = why.splitlines()
        more = ["…"] if len(lines) > _MOST_LINES else []
        yield f"\n\n{code(title)}\n\n{_fenced([*lines[:_MOST_LINES], *more])}"


def _fenced(lines: Iterable[str]) -> str:
    """As they are, by a fence that none of them ends."""
    text = "\n".join(map(visible, lines))
    fence = "`" * max(3, *(len(run) + 1 for run in _RUN.findall(text)), 0)
    return f"{fence}text\n{text}\n{fence}"


def _table(one: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n\n### {code(one['table'])}\n\n"
    if not one["changed"]:
        yield f"It means what {code(against(one))} means."
        return
    compared = one["comparison"]
    yield f"Against {code(against(one))}, over {size(one)}."
    yield from _list("What changes", map(code, one["why"]))
    same = compared["common"] - compared["changed"]
    yield f"\n\n**How much**, in {size(one)}\n"
    counted = [same, *(compared[name] for name in ("changed", "only_blue", "only_green"))]
    head = f"| rows the same | changed | only {BEFORE} | only {AFTER} |\n|--:|--:|--:|--:|"
    yield f"\n{head}\n| {' | '.join(f'{one:,}' for one in counted)} |"
    for side, words in (("blue", BEFORE), ("green", AFTER)):
        if names := compared[f"columns_only_{side}"]:
            yield f"\n\nColumns only {words}: {', '.join(map(code, names))}"
    if compared["blue_raises"]:
        yield f"\n\n{BEFORE.capitalize()} it cannot be read: {prose(compared['blue_raises'])}"
    yield from _columns([column for column in compared["columns"] if column["changed"]])
    yield from _samples(compared["samples"])
    yield from _list("What a build costs", map(prose, cost(one)))
    yield from _list("The sample, and what it cannot say", map(prose, (*parts(one), *one["limits"])))


def _list(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    if not listed:
        return
    yield f"\n\n**{title}**\n"
    yield from (f"\n- {line}" for line in listed[:_MOST_LINES])
    if len(listed) > _MOST_LINES:
        yield f"\n- and {len(listed) - _MOST_LINES} more"


def _columns(columns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not columns:
        return
    yield f"\n\n| column | rows changed | total {BEFORE} | total {AFTER} |\n|---|--:|--:|--:|"
    for one in columns[:_MOST_LINES]:
        totals = [code(total) if total else "" for total in (one["blue_total"], one["green_total"])]
        yield f"\n| {code(one['name'])} | {one['changed']:,} | {totals[0]} | {totals[1]} |"
    if len(columns) > _MOST_LINES:
        yield f"\n\nand {len(columns) - _MOST_LINES} more columns"


def _samples(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not samples:
        return
    yield f"\n\n**Largest differences**\n\n| | key | {BEFORE} → {AFTER} |\n|---|---|---|"
    words = {"changed": "changed", "only_blue": f"only {BEFORE}", "only_green": f"only {AFTER}"}
    for kind, said in words.items():
        for one in [sample for sample in samples if sample["kind"] == kind][:SHOWN]:
            key = ", ".join(f"{code(name)} {code(value)}" for name, value in one["key"].items())
            yield f"\n| {said} | {key} | {_values(one)} |"


def _values(sample: Mapping[str, Any]) -> str:
    """The columns that differ; of a row that one side alone has, what it has there."""
    sides = [one for one in (sample["blue"], sample["green"]) if one is not None]
    names = sample["columns"] or [name for name in sides[0] if name not in sample["key"]]
    shown = [
        f"{code(name)} {' → '.join(code(one[name]) for one in sides)}" for name in names[:_MOST_COLUMNS]
    ]
    more = [f"and {len(names) - _MOST_COLUMNS} more columns"] if len(names) > _MOST_COLUMNS else []
    return ", ".join([*shown, *more])
