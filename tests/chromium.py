"""A real browser without a screen, where chromium is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needed = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed (Debian: chromium-driver)"
)
TEXTS = "return [...document.querySelectorAll(arguments[0])].map(one => one.innerText)"


def started(profile: Path, size: tuple[int, int]) -> Any:
    """One with a profile of its own; whoever has it ends it by `quit()`."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(*size)
    return driver


def texts(browser: Any, selector: str) -> list[str]:
    """What the elements say, hidden ones too, in one step: between two questions the page may change."""
    return list(browser.execute_script(TEXTS, selector))
