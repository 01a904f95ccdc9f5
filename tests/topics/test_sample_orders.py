"""The sequence of orders is fixed by its seed, and its faults come in the shares that were asked for."""

from __future__ import annotations

from collections import Counter

from records import CUSTOMERS, FaultShares, Sample

NOW = 1_790_000_000_000


def _drawn(sample: Sample, cuts: list[int]) -> list[tuple[bytes, bytes | None]]:
    records: list[tuple[bytes, bytes | None]] = []
    for count in cuts:
        draw = sample.draw(count, NOW)
        records += zip(draw.keys, draw.values, strict=True)
    return records


def _sample(seed: int = 1, run: str = "a", faults: FaultShares | None = None) -> Sample:
    return Sample(seed=seed, run=run, schema_id=1, span_ms=7_200_000, faults=faults or FaultShares())


def _event_id(value: bytes) -> bytes:
    return value[6:42]


def test_the_same_seed_and_run_give_the_same_records_however_they_are_cut() -> None:
    assert _drawn(_sample(), [3000]) == _drawn(_sample(), [1, 0, 999, 7, 1993])


def test_another_run_of_a_seed_differs_in_event_ids_only() -> None:
    ours = _drawn(_sample(faults=FaultShares(undecodable=0)), [1000])
    theirs = _drawn(_sample(run="b", faults=FaultShares(undecodable=0)), [1000])

    assert {_event_id(v or b"") for _, v in ours}.isdisjoint(_event_id(v or b"") for _, v in theirs)
    assert [(k, (v or b"")[42:]) for k, v in ours] == [(k, (v or b"")[42:]) for k, v in theirs]


def test_without_faults_every_event_id_is_new() -> None:
    records = _drawn(Sample(seed=1, run="a", schema_id=1), [50_000, 50_000])

    assert len({_event_id(value or b"") for _, value in records}) == 100_000


def test_a_duplicate_repeats_key_and_bytes_of_an_earlier_record() -> None:
    shares = FaultShares(duplicate=0.03, undecodable=0, rule_broken=0, late=0, too_late=0)
    sample = _sample(faults=shares)
    draws = [sample.draw(10_000, NOW) for _ in range(12)]
    records = [pair for draw in draws for pair in zip(draw.keys, draw.values, strict=True)]

    times = Counter(records)
    assert sum(number - 1 for number in times.values()) == sum(draw.faults["duplicate"] for draw in draws)
    assert {key for key, _ in records} == {key for key, _ in times}


def test_a_duplicate_reaches_no_further_back_than_it_may() -> None:
    sample = Sample(seed=1, run="a", schema_id=1, faults=FaultShares(duplicate=0.5), remembered=10)
    values = [value for _, value in _drawn(sample, [2_000])]

    seen: dict[bytes | None, int] = {}
    for place, value in enumerate(values):
        assert place - seen.get(value, place) <= 10 or value in (None, b"")
        seen[value] = place


def test_faults_come_in_the_shares_that_were_asked_for() -> None:
    counts = _sample().draw(200_000, NOW).faults

    shares = {name: number / 200_000 for name, number in counts.items()}
    assert abs(shares["duplicate"] - 0.03) < 0.002
    assert abs(shares["undecodable"] - 0.0025) < 0.0006
    assert abs(shares["rule_broken"] - 0.0025) < 0.0006
    assert abs(shares["late"] - 0.02) < 0.002
    assert 0 < counts["too_late"] < 60


def test_customers_are_skewed_like_zipf() -> None:
    records = _drawn(Sample(seed=1, run="a", schema_id=1), [200_000])
    often = Counter(key for key, _ in records).most_common(3)

    assert often[0][0] == b"customer-000001"
    assert 1.6 < often[0][1] / often[1][1] < 2.4
    assert CUSTOMERS == 100_000
