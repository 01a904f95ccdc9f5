"""Where the library is: in a checkout, or installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import PROJECT
from twinlake.config.library import CHECKOUT, LIBRARY, checkout_of


def test_this_is_a_checkout() -> None:
    assert checkout_of(LIBRARY) == CHECKOUT == PROJECT


@pytest.mark.parametrize("text", [None, '[project]\nname = "shop"\ndependencies = ["twinlake"]\n', "\0"])
def test_an_application_that_has_the_library_in_its_folder_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)

    assert checkout_of(tmp_path / "twinlake") is None
