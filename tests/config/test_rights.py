"""Rights are part of a user's line, and what means nothing is refused with its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import UsageError
from twinlake.config import users
from twinlake.config.rights import ALL, Rights, rights_of, unknown

SOME = Rights(
    tables=("serve.sales_*", "latest_order"),
    hidden=("latest_order.amount",),
    masks={"personal": "hash", "*": "null", "latest_order.status": "last4"},
    rows={"latest_order": "region = 'bavaria: nürnberg'\nOR region IS NULL"},
)


def test_rights_stay_through_every_other_change_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "users"
    users.add(file, "ann", "analyst")
    password = users.add(file, "ben", "analyst")

    users.set_rights(file, "ben", SOME)
    users.set_role(file, "ben", "operator")
    users.accept(file, "ben", password, "new")
    users.keep_only(file, "ben", "new")
    users.set_disabled(file, "ben", True)
    users.ensure(file, {"ben": "newer"}, reader="ben")

    found = users.load(file)
    assert (found["ben"].rights, found["ben"].role, found["ben"].disabled) == (SOME, "operator", True)
    assert found["ann"].rights == ALL and not found["ann"].disabled
    assert users.admitted(file, "ben", "newer") is None
    users.set_disabled(file, "ben", False)
    admitted = users.admitted(file, "ben", "newer")
    assert admitted is not None and admitted.rights == SOME
    password = users.new_password(file, "ben")
    assert users.load(file)["ben"].rights == SOME and users.admitted(file, "ben", password)
    users.set_rights(file, "ben", ALL)
    assert "{" not in file.read_text()


def test_the_key_of_masks_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "users"
    users.add(file, "ann", "analyst")
    assert users.mask_key(file) == ""

    users.set_rights(file, "ann", SOME)
    key = users.mask_key(file)
    users.add(file, "ben", "analyst")
    users.set_rights(file, "ben", SOME)

    assert len(bytes.fromhex(key)) == 32 and users.mask_key(file) == key
    assert list(users.load(file)) == ["ann", "ben"]


def test_options_say_the_same_as_the_file() -> None:
    made = rights_of(
        ["serve.sales_*", "latest_order"], ["latest_order.amount"],
        ["personal=hash", "*=null", "latest_order.status=last4"],
        ["latest_order:  region = 'bavaria: nürnberg'\nOR region IS NULL "],
    )  # fmt: skip

    assert made == SOME and Rights.from_json(json.loads(json.dumps(made.to_json()))) == SOME
    assert rights_of([], [], [], []) == ALL and ALL.to_json() == {}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((["a.b.c"], [], [], []), "'a.b.c' cannot stand for tables"),
        (([""], [], [], []), "'' cannot stand for tables"),
        ((["serve.or?ers"], [], [], []), "'serve.or\\?ers' cannot stand for tables"),
        (([], ["amount"], [], []), "'amount' cannot stand for a hidden column"),
        (([], [], ["personal"], []), "'personal' cannot stand for a mask"),
        (([], [], ["personal=sha1"], []), "'sha1' cannot stand for a mask"),
        (([], [], ["a.b.c=hash"], []), "'a.b.c' cannot stand for what is masked"),
        (([], [], [], ["region = 'a'"]), "cannot stand for a choice of rows"),
        (([], [], [], ["orders:"]), "cannot stand for a choice of rows"),
        (([], [], [], ["orders: " + "x" * 3_000]), "cannot stand for a condition of rows"),
    ],
)
def test_what_means_nothing_is_named(options: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rights_of(*options)


@pytest.mark.parametrize(
    "rights",
    [
        "[]",
        '{"tables": "x"}',
        '{"masks": {"a": 1}}',
        '{"rows": {"t": ""}}',
        '{"other": 1}',
        '{"tables": [1]}',
        "{",
    ],
)
def test_a_line_with_rights_that_mean_nothing_lets_nobody_in(tmp_path: Path, rights: str) -> None:
    file = tmp_path / "users"
    users.add(file, "ann", "analyst")
    file.write_text(file.read_text().rstrip("\n") + f":{rights}\n")

    with pytest.raises(UsageError, match="cannot be read"):
        users.load(file)


def test_a_name_that_stands_for_nothing_is_found() -> None:
    classes = {"orders": {"customer": ["personal"], "amount": []}, "latest_order": {"amount": []}}
    rights = Rights(
        tables=("serve.Latest_*", "release_1.orders", "sales_*"), hidden=("Orders.AMOUNT", "orders.amuont"),
        masks={"personal": "hash", "*": "null", "personl": "hash", "latest_order.customer": "last4"},
    )  # fmt: skip

    assert unknown(rights, classes) == ("sales_*", "orders.amuont", "latest_order.customer", "personl")
    assert unknown(ALL, {"orders": {}}) == ()


@pytest.mark.parametrize("condition", ["region IN (SELECT r FROM t)", "EXISTS ( from t )", "1 = (VALUES 1)"])
def test_a_condition_that_reads_another_table_is_refused_where_it_is_given(condition: str) -> None:
    with pytest.raises(UsageError, match="columns of its table alone"):
        rights_of((), (), (), [f"orders: {condition}"])
    assert rights_of((), (), (), ["orders: note = '(select' AND (selected OR (fromage))"]).rows
