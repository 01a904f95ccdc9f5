"""The browser of somebody who follows a tutorial: it signs in, presses what a page names, and shows it."""

from __future__ import annotations

from pathlib import Path

from tests import chromium
from twinlake.base.errors import TimedOutError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services

SIZE = (1200, 1150)
LONGEST_S = 240
"""How long one looks for what there is to press."""
_THERE = """
const label = arguments[0], shown = (one) => one.checkVisibility() && one.getClientRects().length;
const named = (one) =>
  [one.innerText, one.ariaLabel, one.title].some((text) => (text ?? "").split("\\n").pop().trim() === label);
const dialog = [...document.querySelectorAll("[role=dialog]")].filter(shown).pop();
return [...(dialog ?? document).querySelectorAll("a, button, [role=tab], [role=menuitem], summary")]
  .find((one) => named(one) && !one.disabled && shown(one)) ?? null;
"""


class Browser:
    """Opens `address`, in which one signs in by `services`."""

    def __init__(self, address: str, services: Services, profile: Path) -> None:
        self._services, self._seen = services, b""
        self._driver = chromium.started(profile, SIZE)
        self._driver.get(address)

    def press(self, label: str) -> None:
        """What has this label, or is called so; AssertionError where nothing has for LONGEST_S."""
        try:
            wait_for(f"{label!r} to press", lambda: self._pressed(label), LONGEST_S, every_s=0.5)
        except TimedOutError as error:
            text = self._driver.execute_script("return document.body.innerText")
            where = f"at {self._driver.current_url}:\n{text}"
            raise AssertionError(f"nothing to press is called {label!r} {where}") from error

    def picture(self, file: Path) -> None:
        """Once nothing moves any more."""
        wait_for("the page to stand still", self._stands_still, LONGEST_S, every_s=0.5)
        self._driver.save_screenshot(str(file))

    def close(self) -> None:
        self._driver.quit()

    def _stands_still(self) -> bool | None:
        seen: bytes = self._driver.get_screenshot_as_png()
        is_still = seen == self._seen
        self._seen = seen
        return is_still or None

    def _pressed(self, label: str) -> bool | None:
        from selenium.common.exceptions import WebDriverException

        try:
            if fields := self._driver.find_elements("css selector", "input[type=password]"):
                (name,) = self._driver.find_elements("css selector", "input[name=username]")
                name.send_keys(self._services.airflow_user)
                fields[0].send_keys(self._services.airflow_password, "\n")
                return None
            if (there := self._driver.execute_script(_THERE, label)) is None:
                return None
            there.click()
        except WebDriverException:  # it was drawn anew meanwhile, or something lies above it still
            return None
        return True
