"""A comment on a pull request: whole, bounded, and no value in it is anything but text."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from twinlake.cli.judged import Judged
from twinlake.cli.sample_comment import MARKER, MOST, code, comment, prose
from twinlake.cli.sample_tests import UnitTests
from twinlake.releases.comparison import ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.releases.sampled import CHANGED, Against, Cost, SampledChange, SampledTopic, Taken

CHANGE = SampledChange(
    table="t",
    against=Against(version="b-1", release=3),
    changed=True,
    why=("where: nothing -> status <> 'cancelled'",),
    sample=Taken(
        by="records",
        records=98_304,
        of_records=1_000_000,
        topics={
            "orders": SampledTopic(
                first_batch=12, last_batch=40, records=98_304,
                begin="2026-01-31T12:00:00Z", end="2026-01-31T13:00:00Z",
            )
        },
    ),
    limits=("Counts and totals are of 98,304 of 1,000,000 records, and no estimate for all of history.",),
    comparison=Comparison(
        table="t",
        blue=ComparedVersion(version="b-1", delta_version=None),
        green=ComparedVersion(version=CHANGED, delta_version=None),
        position={"orders": 40},
        keys=("region",),
        common=1_240,
        changed=40,
        only_blue=3,
        only_green=2,
        columns=(
            ComparedColumn(
                name="sales", type="decimal(38,2)", changed=40, blue_total="10.50", green_total="9.00"
            ),
            ComparedColumn(name="buyers", type="bigint", changed=0),
        ),
        columns_only_blue=("old",),
        samples=(
            Sample(
                kind="changed", key={"region": "north"}, blue={"region": "north", "sales": "1.50"},
                green={"region": "north", "sales": "0.00"}, columns=("sales",),
            ),
            Sample(kind="only_blue", key={"region": "x"}, blue={"region": "x", "sales": "2.00"}, green=None),
            Sample(kind="only_green", key={"region": "y"}, blue=None, green={"region": "y", "sales": None}),
        ),
    ),
    cost=Cost(
        builds=True, records=1_000_000, bytes=81_000_000, minutes_estimate=0.5, reaches_back=True, history=""
    ),
    seconds=4.2,
)  # fmt: skip
UNCHANGED = SampledChange(
    table="t", against=Against(version="b-1", release=3), changed=False,
    why=("the definition means what is live",), seconds=0.1,
)  # fmt: skip
NASTY = (
    "a|b", "`code`", "``` fence", "two\nlines", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "@octocat",
    "#1", "owner/repo#1", "https://example.com/x", "www.example.com", "[a](https://b.c)", "**bold**",
    "_it_", "~~gone~~", ":smile:", "$x$", "\\|", "\\`", "<!-- x -->", "gpj.\u202eexe", "</code>",
)  # fmt: skip
RENDERED = MarkdownIt("gfm-like")
TAG = re.compile(r"</?code>|<!-- twinlake diff --sample -->")


class Page(HTMLParser):
    """What becomes of a comment: its tags, how many cells each row has, its texts, those that are no code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.links = set[str](), list[str]()
        self.cells, self.texts, self.prose = list[int](), list[str](), list[str]()
        self._open: list[str] = []
        self.feed(RENDERED.render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "onerror")]
        if tag == "tr":
            self.cells.append(0)
        if tag in ("td", "th"):
            self.cells[-1] += 1

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if not {"code", "pre"} & {*self._open}:
            self.prose.append(data)


def commented(*changes: SampledChange, tests: UnitTests | None = None, **more: Any) -> str:
    found = Judged(against="release 3", compared=[one.to_json() for one in changes], **more)
    return comment(found, tests or UnitTests())


def shown(text: str) -> str:
    """As a browser shows it, more or less."""
    return html.unescape(TAG.sub("", text)).replace("\u200b", "")


def test_it_says_what_changes_how_much_and_of_how_much_that_is() -> None:
    text = commented(CHANGE)

    assert text.startswith(f"{MARKER}\n")
    assert shown(text) == (
        "\n## Tables: t would show other rows\n\n"
        "### t\n\n"
        "Against release 3 (b-1), over the newest 98,304 of 1,000,000 records.\n\n"
        "**What changes**\n\n"
        "- where: nothing -> status <> 'cancelled'\n\n"
        "**How much**, in the newest 98,304 of 1,000,000 records\n\n"
        "| rows the same | changed | only before | only now |\n|--:|--:|--:|--:|\n| 1,200 | 40 | 3 | 2 |\n\n"
        "Columns only before: old\n\n"
        "| column | rows changed | total before | total now |\n|---|--:|--:|--:|\n"
        "| sales | 40 | 10.50 | 9.00 |\n\n"
        "**Largest differences**\n\n"
        "| | key | before → now |\n|---|---|---|\n"
        "| changed | region north | sales 1.50 → 0.00 |\n"
        "| only before | region x | sales 2.00 |\n"
        "| only now | region y | sales null |\n\n"
        "**What a build costs**\n\n"
        "- to build it: 1,000,000 records, 81.0 MB of log, about 0.5 min\n\n"
        "**The sample, and what it cannot say**\n\n"
        "- orders: 98,304 records, batch 12 to 40, 2026-01-31T12:00:00Z to 2026-01-31T13:00:00Z\n"
        "- Counts and totals are of 98,304 of 1,000,000 records, and no estimate for all of history.\n"
    )


def test_the_heading_names_every_table_with_what_became_of_it() -> None:
    assert CHANGE.comparison is not None
    equal = replace(CHANGE.comparison, changed=0, only_blue=0, only_green=0, columns_only_blue=())
    same = replace(CHANGE, table="s", comparison=equal)
    text = shown(commented(CHANGE, same, refused={"r": "why not"}, new=["n"], removed=["g"]))

    first = text.splitlines()[1]
    assert first == (
        "## Tables: t would show other rows; s the same rows in the sample; r not known; n new; g gone"
    )
    assert "r: what it shows is not known: why not" in text and "g: its definition is gone" in text
    many = [f"t{number}" for number in range(5_000)]
    assert shown(commented(new=many)).splitlines()[1].endswith(", t19 and 4980 more new")
    assert len(commented(new=many)) <= MOST
    assert "Tables: no definition differs from release 3" in shown(commented())


def test_failing_unit_tests_are_shown_as_they_are() -> None:
    failed = (("t: a case", "rows: 1 expected\n```\n@octocat"), *[("more", "x")] * 9)
    text = commented(CHANGE, tests=UnitTests(passed=2, failed=failed, waiting=1))

    assert "**Unit tests** of these tables: 2 passed, **10 failed**, 1 not run: only Spark can" in text
    assert "````text\nrows: 1 expected\n```\n@octocat\n````" in text
    assert text.count("<code>more</code>") == 4


@pytest.mark.parametrize("nasty", NASTY)
def test_a_value_is_text_wherever_it_stands(nasty: str) -> None:
    assert CHANGE.comparison is not None
    row = {"region": nasty, nasty: nasty}
    comparison = replace(
        CHANGE.comparison,
        columns=(ComparedColumn(name=nasty, type="string", changed=1, blue_total=nasty, green_total=nasty),),
        samples=(Sample(kind="changed", key={"region": nasty}, blue=row, green=row, columns=(nasty,)),),
        columns_only_blue=(nasty,), blue_raises=nasty,
    )  # fmt: skip
    change = replace(CHANGE, why=(nasty,), limits=(nasty,), comparison=comparison)

    page, plain = Page(commented(change, refused={"t": nasty})), Page(commented(CHANGE))

    assert page.tags <= {*plain.tags, "p"} and page.links == []
    assert page.cells == [4, 4, 4, 4, 3, 3]
    said = nasty.replace("\n", "\\n").replace("\u202e", "\\u202e")
    assert "".join(page.texts).replace("\u200b", "").count(said) >= 8
    assert not re.search(r"@\w|#\d", "".join(page.prose))


def test_a_value_is_cut_and_a_sentence_mentions_nobody() -> None:
    assert len(html.unescape(code("x" * 500))) < 150
    assert prose("ask @octocat about #5") == "ask &#64;&#8203;octocat about &#35;&#8203;5"


def test_a_comment_has_an_end_and_says_what_it_leaves_out() -> None:
    assert CHANGE.comparison is not None
    long = {f"column_{number}": "@" * 500 for number in range(50)}
    sample = Sample(kind="changed", key={"region": "x"}, blue=long, green=long, columns=tuple(long))
    comparison = replace(CHANGE.comparison, samples=(sample,) * 20)

    text = commented(*[replace(CHANGE, table=f"t{number}", comparison=comparison) for number in range(40)])

    assert MOST - 10_000 < len(text) <= MOST
    assert text.endswith("The rest is left out: `twinlake diff --sample TABLE` shows it.\n")
    assert all(line.count("|") in (0, 4, 5) for line in text.splitlines())
