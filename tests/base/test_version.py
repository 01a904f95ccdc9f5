"""The version is one, and says with which others the code understands itself."""

from __future__ import annotations

import importlib.metadata

import pytest

from twinlake.base import version
from twinlake.base.version import VERSION, is_compatible


def test_the_installed_package_has_the_version_that_the_code_says() -> None:
    assert importlib.metadata.version("twinlake") == VERSION


@pytest.mark.parametrize(
    ("other", "fit"), [("1.2.3", True), ("1.2.99", True), ("1.3.3", False), ("2.2.3", False), ("none", False)]
)
def test_versions_fit_that_differ_in_the_last_number_only(
    monkeypatch: pytest.MonkeyPatch, other: str, fit: bool
) -> None:
    monkeypatch.setattr(version, "VERSION", "1.2.3")

    assert is_compatible(other) == fit
