"""One SQL statement is one definition; what has no kind is refused by name, at its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import DefinitionError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.sql_form import header
from twinlake.kinds.sql_form.reading import definition, read
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.windows import Hopping, Tumbling

TOPIC: dict[str, Any] = {"name": "x", "inputs": ("t",)}
FOUND: dict[str, Kind] = {
    "SELECT a, b + 1 AS c FROM t WHERE a > limit AND NOT b": Events(
        **TOPIC, where="a > limit AND NOT b", columns={"a": "a", "c": "b + 1"}
    ),
    "-- store.keys: a, b\n-- store.on: at\n-- store.cell: 1 hour\nselect a, b, at from t;\n": Events(
        **TOPIC, columns={"a": "a", "b": "b", "at": "at"},
        store=Store(keys=("a", "b"), on="at", cell="1 hour"),
    ),
    # an argument that is no name is a column of the measure's name, and the columns are in the text's order
    """-- Sales: per minute.
-- retention: 400 days

SELECT region, -- who sells
  sum(price * quantity) AS sales, count(*) AS `n`
FROM t WHERE price > 0 GROUP BY region, tumble(at, '1 minute')""": Aggregate(
        **TOPIC, where="price > 0", columns={"region": "region", "sales": "price * quantity", "at": "at"},
        keys=("region",), window=Tumbling(on="at", size="1 minute"), retention="400 days",
        measures={"sales": Sum("sales"), "n": Count()},
    ),
    "SELECT lower(a) AS b, count(c) AS n FROM t GROUP BY lower(a), hop(at, '1 day', '1 day', 'Asia/Tokyo')": (
        Aggregate(
            **TOPIC, columns={"b": "lower(a)", "c": "c", "at": "at"}, keys=("b",), measures={"n": Count("c")},
            window=Hopping(on="at", size="1 day", every="1 day", time_zone="Asia/Tokyo"),
        )
    ),
    # the columns are those of the SELECT in brackets, and no others
    """SELECT k, count(DISTINCT v) AS d, approx_count_distinct(v) AS e, max_by(v, w) AS f,
      approx_percentile(w, array(0, 0.5)) AS g, histogram(w, -1, 1e3, 5) AS h, top_k(v, 3, w) AS i,
      collect_set(v) AS j
    FROM (SELECT v, _key AS k, w, u FROM t LATERAL VIEW explode(vs) AS v WHERE v <> '')
    GROUP BY k""": Aggregate(
        **TOPIC, explode=Explode(name="v", array="vs"), where="v <> ''", keys=("k",),
        columns={"v": "v", "k": "_key", "w": "w", "u": "u"},
        measures={
            "d": CountDistinct("v", exact=True), "e": CountDistinct("v"), "f": ArgMax("v", "w"),
            "g": Quantile("w", (0, 0.5)), "h": Histogram("w", low=-1, high=1e3, buckets=5),
            "i": TopK("v", 3, "w"), "j": CollectSet("v"),
        },
    ),
    "SELECT k, a FROM t QUALIFY row_number() OVER (PARTITION BY k) = 1": Latest(
        **TOPIC, columns={"k": "k", "a": "a"}, keys=("k",), values=("a",)
    ),
    """-- delete_when: gone
--   OR hidden
SELECT k, a AS b FROM t
QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY b DESC, at DESC NULLS LAST) = 1""": Latest(
        **TOPIC, columns={"k": "k", "b": "a", "at": "at"}, keys=("k",), values=("b",), order=("b", "at"),
        delete_when="gone\nOR hidden",
    ),
    "SELECT k, a FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY a DESC) <= 10": TopRows(
        **TOPIC, columns={"k": "k", "a": "a"}, keys=("k",), values=("a",), order=("a",), rows=10
    ),
    "-- grid: 7 days\nSELECT k, sum(a) AS a FROM t GROUP BY session(at, '30 minutes'), k": Sessions(
        **TOPIC, columns={"k": "k", "a": "a", "at": "at"}, keys=("k",), on="at", gap="30 minutes",
        grid="7 days", measures={"a": Sum("a")},
    ),
    "-- keys: a\n-- reads: u, v\n-- by: a\nSELECT u.a, count(*) AS n FROM u JOIN v GROUP BY u.a --": Derived(
        name="x", reads=("u", "v"), columns=("a", "n"), keys=("a",), by=("a",),
        sql="SELECT u.a, count(*) AS n FROM u JOIN v GROUP BY u.a",
    ),
    "-- reads: u\n-- keys: a\n-- columns: a, b\n-- broadcast: u\nSELECT * FROM u": Derived(
        name="x", reads=("u",), columns=("a", "b"), keys=("a",), by=(), sql="SELECT * FROM u",
        broadcast=("u",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "table"), FOUND.items(), ids=[one.kind for one in FOUND.values()])
def test_a_statement_is_the_definition_that_it_says(text: str, table: Kind) -> None:
    assert definition(text, "x").to_json() == table.to_json()


REFUSED = {
    "": "1:1 there is no statement",
    "-- only: prose": "1:15 there is no statement",
    "SELECT a FROM t;\n SELECT b FROM u": "2:2 a second statement begins here",
    "INSERT INTO t SELECT 1": "1:1 it begins with INSERT",
    "SELECT a, 'b FROM t": "1:11 a quote or a comment is not closed",
    "SELECT '/*' AS a, /* b FROM t": "1:19 a quote or a comment is not closed",
    "SELECT a, count(* AS n FROM t": "1:16 this `(` is not closed",
    "SELECT a), b FROM t": "1:9 nothing opens this `)`",
    "SELECT a,, b FROM t": "1:10 there is nothing before or after a comma",
    "SELECT a": "1:8 no FROM follows",
    "SELECT a FROM": "1:10 nothing follows FROM",
    "SELECT a FROM 'x'": "1:15 x is no topic's name",
    "SELECT a FROM t WHERE": "1:17 nothing follows WHERE",
    "SELECT\n *\nFROM t": "2:2 SELECT * would follow",
    "SELECT t.* FROM t": "1:8 SELECT * would follow",
    "SELECT DISTINCT a FROM t": "1:8 SELECT DISTINCT has no kind | GROUP BY",
    "SELECT a FROM t\nORDER BY a": "2:1 ORDER BY has no kind | QUALIFY",
    "SELECT a FROM t LIMIT 3": "1:17 LIMIT has no kind | <= 10",
    "SELECT a FROM t GROUP BY a HAVING b": "1:28 HAVING has no kind | Derived",
    "SELECT a FROM t UNION SELECT a FROM u": "1:17 UNION has no kind | Union",
    "SELECT a FROM t JOIN u ON t.a = u.a": "1:17 JOIN has no kind | IntervalJoin or AsOfJoin in Python",
    "SELECT a FROM t LEFT JOIN u ON t.a = u.a": "1:17 LEFT has no kind | `-- reads: a, b`",
    "SELECT a FROM t, u": "1:16 FROM names two",
    "SELECT a FROM t AS u": "1:17 AS follows what is read",
    "SELECT a FROM lake.t": "1:15 lake.t is no topic's name",
    "WITH u AS (SELECT a FROM t) SELECT a FROM u": "1:1 WITH has no kind | FROM (SELECT ...)",
    "SELECT a FROM (SELECT a FROM t)": "1:16 a SELECT in brackets has no kind",
    "SELECT a, count(*) AS n FROM (SELECT a FROM (SELECT a FROM t)) GROUP BY a": "1:46 a SELECT within two",
    "SELECT a, (SELECT 1) AS b FROM t": "1:12 a subquery has no kind | Derived",
    "SELECT a FROM t WHERE a IN (SELECT 1)": "1:29 a subquery has no kind",
    "SELECT a, rank() OVER (ORDER BY a) AS b FROM t": "1:18 a window function",
    "SELECT a + 1 FROM t": "1:8 a + 1 has no name | AS name",
    "SELECT a AS x, b AS x FROM t": "1:16 two columns are called x",
    "SELECT a, b FROM t LATERAL VIEW explode(c) AS b": "1:41 a table of kind events has no LATERAL VIEW",
    "SELECT b, count(*) AS n FROM t LATERAL VIEW OUTER explode(c) AS b GROUP BY b": (
        "1:45 LATERAL VIEW OUTER"
    ),
    "SELECT a FROM t GROUP BY a WHERE b": "1:28 WHERE is not where it belongs",
    "SELECT a, count(*) FROM t GROUP BY a": "1:11 count(*) has no name",
    "SELECT count(*) AS n FROM t": "1:8 it is grouped by nothing | 'all' AS everything",
    "SELECT a, b, count(*) AS n FROM t GROUP BY a": "1:11 b is neither grouped by nor a measure",
    "SELECT a, count(*) AS n FROM t GROUP BY a, b": "1:44 it is grouped by b, which is not selected",
    "SELECT count(*) AS n, a FROM t GROUP BY a": "1:23 a follows a measure",
    "SELECT a, count(*) AS n FROM t GROUP BY 1": "1:41 GROUP BY 1 has no kind",
    "SELECT a, count(*) AS n FROM t GROUP BY ALL": "1:41 GROUP BY ALL has no kind",
    "SELECT a, count(*) AS n FROM t GROUP BY a WITH ROLLUP": "1:41 GROUP BY a WITH ROLLUP has no kind",
    "SELECT a, median(b) AS n FROM t GROUP BY a": "1:11 median(...) is no measure | approx_percentile",
    "SELECT a, summ(b) AS n FROM t GROUP BY a": "1:11 summ(...) is no measure | did you mean sum?",
    "SELECT a, sum(b) / count(*) AS n FROM t GROUP BY a": "1:18 / after sum(...) | Derived",
    "SELECT a, sum(b) total FROM t GROUP BY a": "1:11 sum(b) total has no name | AS name",
    "SELECT tumble(at, '1 day') AS d, count(*) AS n FROM t GROUP BY tumble(at, '1 day')": (
        "1:8 tumble(at, '1 day') is the window's | leave it out"
    ),
    "SELECT window_start, count(*) AS n FROM t GROUP BY tumble(at, '1 day')": (
        "1:8 window_start is the window's"
    ),
    "SELECT a, round(sum(b), 2) AS n FROM t GROUP BY a": "1:11 sum(...) is a part of another | Derived",
    "SELECT a, sum(b) FILTER (WHERE c) AS n FROM t GROUP BY a": "1:18 FILTER after sum(...) | sum(if(",
    "SELECT a, sum(DISTINCT b) AS n FROM t GROUP BY a": (
        "1:11 no measure is written like this sum | sum(column)"
    ),
    "SELECT a, count() AS n FROM t GROUP BY a": "1:11 no measure is written like this count | count(*) or",
    "SELECT a, approx_percentile(b, c) AS n FROM t GROUP BY a": "1:32 c is not a number",
    "SELECT a, max_by(b, c + 1) AS n FROM t GROUP BY a": "1:21 c + 1 has no name of its own | AS name",
    "SELECT a, sum(b) AS c, max(b * 2) AS b FROM t GROUP BY a": "1:28 b is b already, and b * 2 here",
    "SELECT a, sum(c) AS c FROM (SELECT a, b FROM t) GROUP BY a": "1:15 c is not a column of the inner",
    "SELECT a AS c, sum(b) AS d FROM (SELECT a, b FROM t) GROUP BY c": "1:8 a gets its name outside",
    "SELECT a, sum(b) AS b FROM (SELECT a, b FROM t) WHERE b GROUP BY a": "1:55 it stands after a SELECT",
    "SELECT a, sum(b) AS b FROM (SELECT a, b FROM t GROUP BY a) GROUP BY a": "1:57 it stands in a SELECT",
    "SELECT a, count(*) AS n FROM t GROUP BY a, window(at, '1 day')": "1:44 window(...) is no",
    "SELECT a, count(*) AS n FROM t GROUP BY a, tumble(at)": "1:44 no window is written | '1 minute'",
    "SELECT a, count(*) AS n FROM t GROUP BY a, tumble(at, 1)": "1:55 1 is not a text",
    "SELECT count(*) AS n FROM t GROUP BY tumble(at, '1 day'), tumble(b, '1 day')": (
        "1:59 a table has one window"
    ),
    "SELECT a, b FROM t QUALIFY rank() OVER (PARTITION BY a) = 1": (
        "1:28 this QUALIFY has no kind | row_number()"
    ),
    "SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a) = 2": "1:28 this QUALIFY has no kind",
    "SELECT a, b FROM t QUALIFY row_number() OVER (ORDER BY b DESC) = 1": "1:46 it is not said of which key",
    "SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1": (
        "1:71 the first row | DESC"
    ),
    "SELECT b, a FROM t QUALIFY row_number() OVER (PARTITION BY a) = 1": "1:8 the table shows a first",
    "SELECT a, sum(b) AS b FROM t QUALIFY row_number() OVER (PARTITION BY a) = 1": (
        "1:38 QUALIFY beside measures"
    ),
    "-- retentoin: 3 days\nSELECT count(*) AS n FROM t GROUP BY tumble(at, '1 day')": (
        "1:4 retentoin is no key of a table of kind aggregate in SQL; did you mean retention?"
    ),
    "-- A table.\n-- retention: 3 days\nSELECT a FROM t": "2:4 retention is no key of a table of kind events",
    "-- grid: 1 day\n-- grid: 1 day\nSELECT a, count(*) AS n FROM t GROUP BY a, session(at, '1 hour')": (
        "2:4 grid is given twice"
    ),
    "-- store.keys: a\nSELECT a FROM t": "1:4 store.on is missing beside store.keys",
    "-- Retention: 3 days\nSELECT a FROM t": "1:4 this is no key, and reads like one | `-- retention: value`",
    "--  keys : a\nSELECT a FROM t": "1:5 this is no key, and reads like one",
    "/* Of us. */\n/*\n*/\n-- grid: 1 day\nSELECT a FROM t": "4:4 grid is no key of a table of kind events",
    "-- reads:\nSELECT a FROM u": "1:4 reads names no table",
    "-- reads: u\nSELECT a FROM u": "1:4 it has no keys",
    "-- reads: u\n-- keys: a\nSELECT a,\n b + 1 FROM u": "4:2 b + 1 has no name | `-- columns: a, b`",
    "-- reads: u\n-- keys: a\nTABLE u": "3:1 its columns are not clear | `-- columns: a, b`",
}
"""By the text, where, why, and a part of what to do."""


@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_what_has_no_kind_is_refused_by_name_with_its_place_and_a_remedy(text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        definition(text, "x", "x.sql")

    error, (place, _, rest) = refused.value, said.partition(" ")
    why, _, remedy = rest.partition(" | ")
    assert (f"{error.line}:{error.column}", error.file) == (place, "x.sql")
    assert error.why_text.startswith(why) and remedy in error.remedy


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT b, count(*) AS n\nFROM t\nGROUP BY b, tumble(at, 'soon')", (3, 24)),
        ("-- retention: soon\nSELECT count(*) AS n FROM t GROUP BY tumble(at, '1 day')", (1, 15)),
        ("-- reads: u\n-- keys: a, z\nSELECT a, 'z' AS b FROM u", (2, 13)),
        ("-- 'z' is meant\n-- store.keys: z\n-- store.on: a\n-- store.cell: 1 day\nSELECT a FROM t", (2, 16)),
    ],
)  # fmt: skip
def test_what_the_kind_refuses_is_refused_where_it_is_written(
    tmp_path: Path, text: str, place: tuple[int, int]
) -> None:
    file = tmp_path / "x.sql"
    file.write_text(text)

    with pytest.raises(DefinitionError) as refused:
        read(file)

    assert (refused.value.line, refused.value.column) == place


def test_a_text_of_a_definition_is_found_where_it_is_written_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "x.sql"
    file.write_text("-- a > 1: x\nSELECT b, -- a > 1\n  if(c,\n    d, 'a > 1') AS e\nFROM t WHERE a > 1")
    table: Any = read(file)

    inside = table.columns["e"]

    found = [
        table.error_at_text(text, "", "", word)
        for text, word in ((table.where, ""), (inside, "d"), (inside, "zz"), ("gone", ""))
    ]

    assert [(one.line, one.column) for one in found] == [(5, 14), (4, 5), (3, 3), (2, None)]


def test_a_file_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_bytes(b"SELECT '\xff' AS a FROM t")

    with pytest.raises(DefinitionError, match="not UTF-8"):
        read(tmp_path / "x.sql")


def test_what_is_written_on_windows_is_read_as_what_is_written_elsewhere() -> None:
    text = "-- reads: u\n-- keys: a\nSELECT a FROM u\n"

    assert definition(text.replace("\n", "\r\n"), "x").to_json() == definition(text, "x").to_json()


def test_prose_on_top_is_what_the_table_is_about() -> None:
    top = header.read("-- Sales: one row a day.\n--\n-- see: docs\n--   more of it\n-- And this.\n\nSELECT 1")

    assert top.about == "Sales: one row a day.\n\nAnd this."
    assert [(one.key, one.value) for one in top.said] == [("see", "docs\nmore of it")]
