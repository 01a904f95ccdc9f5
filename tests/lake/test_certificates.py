"""Certificates are kept in the lake; the newest of each version is known at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from twinlake.kinds.windows import ALL
from twinlake.lake.catalog import certificates as module
from twinlake.lake.catalog.certificates import Base, Certificate, Certificates
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.lake.delta import ledger
from twinlake.witness.answer import Answer, Behind, Difference, RecordId

RANGE = [{"from": "2026-01-31T10:00:00Z", "to": "2026-01-31T11:00:00Z"}]


def certificate(minute: int, equal: bool = True, **more: Any) -> Certificate:
    usual: dict[str, Any] = {
        "id": f"c{minute}", "job": "j1", "kind": "verify", "table": "sales", "version": "a-1",
        "fingerprint": "a" * 64, "position": {"orders": minute, "returns": 3}, "delta_version": 5,
        "step": 4, "through_segment": None, "windows": ALL.to_json(), "rows_compared": 100,
        "differing": 0 if equal else 1, "equal": equal, "created_at": f"2026-01-31T12:{minute:02}:00Z",
    }  # fmt: skip
    return Certificate(**{**usual, **more})


def added(lake: Path, *made: Certificate) -> Certificates:
    certificates = Certificates(lake)
    for one in made:
        certificates.add(one)
    return certificates


def test_the_newest_certificate_of_a_version_is_the_one_that_was_added_last(tmp_path: Path) -> None:
    certificates = added(tmp_path, certificate(1), certificate(2, equal=False), certificate(3))

    assert certificates.newest("sales", "a-1") == certificate(3)


def test_a_version_has_only_certificates_of_its_own(tmp_path: Path) -> None:
    other_version, other_table = certificate(2, version="b-2"), certificate(3, table="returns")

    certificates = added(tmp_path, certificate(1), other_version, other_table)

    found = [certificates.newest(*key) for key in (("sales", "a-1"), ("sales", "b-2"), ("returns", "a-1"))]
    assert found == [certificate(1), other_version, other_table]
    assert certificates.newest("returns", "b-2") is None


def test_an_equal_range_proves_less_than_the_whole_and_replaces_nothing(tmp_path: Path) -> None:
    unequal = certificate(1, equal=False)

    certificates = added(tmp_path, unequal, certificate(2, windows=RANGE))

    assert certificates.newest("sales", "a-1") == unequal


def test_an_equal_range_alone_certifies_nothing(tmp_path: Path) -> None:
    certificates = added(tmp_path, certificate(1, windows=RANGE))

    assert certificates.newest("sales", "a-1") is None


def test_a_composed_certificate_covers_all_of_history_and_says_what_it_goes_on_from(tmp_path: Path) -> None:
    whole = certificate(1, kind="rebuild")
    second = certificate(2, kind="rebuild", windows=RANGE, base=whole.as_base)
    third = certificate(3, windows=RANGE, base=second.as_base)
    certificates = added(tmp_path, whole, second, third)

    assert Certificates(tmp_path).newest("sales", "a-1") == third and third.covers_all and not third.is_whole
    assert certificates.base("sales", "a-1", "rebuild") == second
    assert certificates.base("sales", "a-1", "verify") == third
    assert third.base == Base(
        certificate="c2", position=second.position, whole_position=whole.position, whole_at=whole.created_at,
        evidence={},
    )  # fmt: skip
    assert third.covers == (
        "all of history: windows with new records since orders batch 2, returns batch 3, "
        "on top of all that came up to orders batch 1, returns batch 3"
    )
    counted = certificate(4, windows=(), base=second.as_base)
    assert counted.covers.startswith("all of history: the count of records since")
    assert whole.covers == "all of history"
    assert certificate(4, windows=RANGE).covers == "windows 2026-01-31T10:00:00Z to 2026-01-31T11:00:00Z"


@pytest.mark.parametrize(
    "more", [{"equal": False}, {"windows": RANGE}, {"kind": "verify"}], ids=["unequal", "range", "verify"]
)
def test_the_next_rebuild_goes_on_from_an_equal_one_of_all_of_history(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    first = certificate(1, kind="rebuild")

    certificates = added(tmp_path, first, certificate(2, **{"kind": "rebuild", **more}))

    assert certificates.base("sales", "a-1", "rebuild") == first


def test_after_a_start_nothing_goes_on_from_a_certificate_of_before(tmp_path: Path) -> None:
    added(tmp_path, certificate(1))

    assert Certificates(tmp_path).base("sales", "a-1", "verify") is None


def test_a_difference_stands_until_all_of_history_is_found_equal(tmp_path: Path) -> None:
    """Also where the composed one had decided what to look at before the difference was found."""
    first, unequal = certificate(1), certificate(2, equal=False)
    certificates = added(tmp_path, first, unequal, certificate(3, windows=RANGE, base=first.as_base))

    assert certificates.newest("sales", "a-1") == Certificates(tmp_path).newest("sales", "a-1") == unequal
    assert certificates.base("sales", "a-1", "verify") == first
    certificates.add(certificate(4, delta_version=4))  # it had begun before the difference was there
    assert certificates.newest("sales", "a-1") == unequal
    certificates.add(certificate(5))
    assert certificates.newest("sales", "a-1") == certificate(5)


def test_a_composed_rebuild_is_gone_on_from_and_proves_nothing_of_other_windows(tmp_path: Path) -> None:
    whole = certificate(1)
    composed = certificate(2, kind="rebuild", windows=RANGE, base=whole.as_base)

    certificates = added(tmp_path, whole, composed)

    assert certificates.newest("sales", "a-1") == Certificates(tmp_path).newest("sales", "a-1") == whole
    assert certificates.base("sales", "a-1", "rebuild") == composed


def test_an_unequal_range_disproves_the_whole(tmp_path: Path) -> None:
    unequal = certificate(2, equal=False, windows=RANGE)

    certificates = added(tmp_path, certificate(1), unequal)

    assert certificates.newest("sales", "a-1") == unequal


def test_the_newest_survives_a_restart_with_the_differing_rows(tmp_path: Path) -> None:
    differences = [{"why": "changed", "speed": {"sales": "1.50"}, "batch": {"sales": None}}]
    unequal = certificate(2, equal=False, differences=differences, kind="rebuild", windows=RANGE,
                          delta_version=None, step=None, through_segment=7)  # fmt: skip
    added(tmp_path, certificate(1), unequal, certificate(3, windows=RANGE))

    restarted = Certificates(tmp_path)

    assert restarted.newest("sales", "a-1") == unequal


def test_after_a_restart_and_a_new_one_the_new_one_is_the_newest_for_good(tmp_path: Path) -> None:
    added(tmp_path, certificate(1, equal=False), certificate(2))
    added(tmp_path, certificate(3, equal=False))

    restarted = Certificates(tmp_path)

    assert restarted.newest("sales", "a-1") == certificate(3, equal=False)


def test_a_clock_that_goes_back_makes_no_newer_certificate_older(tmp_path: Path) -> None:
    """Nor does a long rebuild, which is dated when it began and added when it ended."""
    unequal = certificate(1, equal=False)

    certificates = added(tmp_path, certificate(5), unequal)

    found = (certificates.newest("sales", "a-1"), Certificates(tmp_path).newest("sales", "a-1"))
    assert found == (unequal, unequal)


def test_the_newest_is_still_the_newest_after_a_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    certificates = added(tmp_path, certificate(1, equal=False), certificate(2, equal=False), certificate(3))

    compacted = certificates.compact()

    assert (compacted, Certificates(tmp_path).newest("sales", "a-1")) == (True, certificate(3))


def test_of_many_certificates_the_last_are_kept_and_the_newest_of_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    monkeypatch.setattr(module, "KEEP", 2)
    other = certificate(1, table="returns")
    certificates = added(tmp_path, certificate(0), other, *(certificate(minute) for minute in range(2, 7)))

    assert certificates.compact()

    assert len(certificates._ledger.rows()) == 3
    restarted = Certificates(tmp_path)
    assert restarted.newest("returns", "a-1") == other
    assert restarted.newest("sales", "a-1") == certificate(6)
    restarted.add(certificate(7))
    assert Certificates(tmp_path).newest("sales", "a-1") == certificate(7)


def test_certificates_that_threads_add_at_once_all_survive(tmp_path: Path) -> None:
    made = [certificate(minute, version=f"v-{minute}") for minute in range(16)]
    certificates = Certificates(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(certificates.add, made))

    restarted = Certificates(tmp_path)
    assert [restarted.newest("sales", one.version) for one in made] == made


def test_a_summary_leaves_out_only_the_differing_rows() -> None:
    unequal = certificate(1, equal=False, differences=[{"why": "changed"}])

    more = {"covers": "all of history", "raises": None, "proof": "", "disputed": False}
    told = {**unequal.to_json(), **more}
    assert {**unequal.summary(), "differences": [{"why": "changed"}]} == told
    assert "differences" not in unequal.summary()


def test_what_another_engine_found_survives_a_restart(tmp_path: Path) -> None:
    record = RecordId(topic="orders", epoch=0, partition=1, offset=2)
    one = Difference(
        key={"k": "1"}, columns=("n",), witness={"n": "1"}, shown={"n": "2"},
        behind=Behind(records=(record,), count=1),
    )  # fmt: skip
    answer = Answer(
        table="sales", verdict="differs", engine="DuckDB 2.0.0", rows=3, differing=1, differences=(one,)
    )
    found = Witnessed(answer=answer, position={"orders": 1}, at="now")
    added(tmp_path, certificate(1, witness=found))

    kept = Certificates(tmp_path).newest("sales", "a-1")

    assert kept is not None and kept.witness == found
    assert kept.summary()["proof"] == "DuckDB 2.0.0 differs in 1 of 3 rows, at orders batch 1 on now"


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("equal", "what the table shows: equal by DuckDB 2.0.0 (3 rows)"),
        ("differs", "what the table shows: DuckDB 2.0.0 differs in 1 of 3 rows"),
    ],
)
def test_where_speed_and_batch_differ_another_engine_says_which_is_right(verdict: Any, says: str) -> None:
    answer = Answer(table="sales", verdict=verdict, engine="DuckDB 2.0.0", rows=3, differing=1)
    unequal = certificate(1, equal=False)
    found = Witnessed(answer=answer, position=unequal.position, at="now")

    assert replace(unequal, witness=found).proof == says


def test_certificates_of_before_gain_room_for_another_engine_and_keep_what_they_say(tmp_path: Path) -> None:
    fields = [one for one in module.SCHEMA if one.name != "witness"]
    older = ledger.Ledger(tmp_path / "certificates", pa.schema(fields))
    row = {name: value for name, value in asdict(certificate(1)).items() if name != "witness"}
    nested = ("position", "windows", "differences", "base", "evidence")
    row |= {name: json.dumps(row[name]) for name in nested}
    older.append([{**row, "sequence": 1}])

    for _ in range(2):  # the step is made again where it was killed before its number was stored
        module.gain_columns(tmp_path)

    certificates = Certificates(tmp_path)
    assert certificates.newest("sales", "a-1") == certificate(1)
    certificates.add(certificate(2))
    assert Certificates(tmp_path).newest("sales", "a-1") == certificate(2)
