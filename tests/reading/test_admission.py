"""Who was let in once is let in at once, for as long as the users file says so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from twinlake.config import users
from twinlake.config.users import ANALYST, OPERATOR
from twinlake.reading.admission import Admission


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def test_who_is_removed_or_has_another_password_is_out_at_once(file: Path) -> None:
    first = users.add(file, "ann", ANALYST)
    users.add(file, "ben", ANALYST)
    admission = Admission(file)
    assert [admission.admits("ann", first) is not None for _ in range(2)] == [True, True]

    users.set_role(file, "ann", OPERATOR)
    found = admission.admits("ann", first)
    assert found and found.role == OPERATOR
    second = users.new_password(file, "ann")
    assert admission.admits("ann", first) is None and admission.admits("ann", second)
    assert admission.admits("ben", second) is None and admission.admits("ann", "") is None
    users.remove(file, "ann")
    assert admission.admits("ann", second) is None


def test_the_second_time_costs_a_fraction_of_the_first(file: Path) -> None:
    password = users.add(file, "ann", ANALYST)
    admission = Admission(file)

    def took() -> float:
        began = time.thread_time()
        assert admission.admits("ann", password)
        return time.thread_time() - began

    first = took()
    assert min(took() for _ in range(5)) < first / 3
