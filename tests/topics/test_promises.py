"""What a contract promises of time, and to whom, in the standard's own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import ContractError
from twinlake.topics.contract_file import load_promise
from twinlake.topics.promises import Promise, read_promise


@pytest.mark.parametrize(
    ("value", "unit", "seconds"),
    [(5, "minutes", 300), ("0.5", "s", 0.5), (2, "h", 7_200), (1, "day", 86_400), (90, "min", 5_400)],
)
def test_latency_and_frequency_are_seconds(value: Any, unit: str, seconds: float) -> None:
    for name in ("latency", "frequency", "retention"):
        document = {"slaProperties": [{"property": name, "value": value, "unit": unit}]}
        assert getattr(read_promise(document, "f"), f"{name}_s") == seconds


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"value": 5, "unit": "weeks"}, "slaProperties[0].unit"),
        ({"value": 5}, "slaProperties[0].unit"),
        ({"value": 0, "unit": "s"}, "slaProperties[0].value"),
        ({"value": "soon", "unit": "s"}, "slaProperties[0].value"),
        ({"value": "NaN", "unit": "s"}, "slaProperties[0].value"),
    ],
)
def test_what_is_no_time_is_named_with_its_place(one: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractError) as wrong:
        read_promise({"slaProperties": [{"property": "latency", **one}]}, "contracts/t.yaml")
    assert said in str(wrong.value)


def test_a_promise_that_is_made_twice_is_refused() -> None:
    one = {"property": "latency", "value": 5, "unit": "s"}
    with pytest.raises(ContractError, match="latency is said twice"):
        read_promise({"slaProperties": [one, one]}, "f")


def test_what_is_left_empty_or_is_another_property_promises_nothing() -> None:
    said = [
        {"property": "latency", "value": "", "unit": "minutes"},
        {"property": "generalAvailability", "value": "2026-05-12"},
    ]
    assert read_promise({"slaProperties": said}, "f") == Promise()


def test_owners_are_the_mail_addresses_of_support_and_team_once_each() -> None:
    document = {
        "support": [
            {"channel": "mail", "url": "mailto:data@example.com?subject=x"},
            {"channel": "chat", "url": "https://chat.example.com"},
        ],
        "team": {
            "name": "Sales data",
            "members": [
                {"username": "anna@example.com"},
                {"username": "data@example.com"},
                {"username": "gone@example.com", "dateOut": "2026-01-01"},
                {"username": "ben"},
                {"username": "j\u00fcrgen@example.com"},
                {"username": "jane@"},
                {"username": "a@example.com\nBcc: evil@example.com"},
            ],
        },
    }
    made = read_promise(document, "f")
    assert (made.team, made.owners) == ("Sales data", ("data@example.com", "anna@example.com"))


def test_a_table_without_a_contract_promises_nothing_and_a_short_one_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "sales.yaml"
    assert load_promise(file) == Promise()
    file.write_text("name: sales\nslaProperties:\n  - {property: latency, value: 1, unit: minutes}\n")
    assert load_promise(file) == Promise(latency_s=60.0)
