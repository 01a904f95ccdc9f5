"""Takes the pictures of docs/console.md: `python -m tests.console_pictures --home HOME` of what runs.

It signs in as the first user, asks one statement, and keeps a picture of each page below docs/pictures/.
Home plots as much of the last day as `twinlake up` has run there.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from tests.chromium import started
from tests.project import PROJECT
from twinlake.config.settings import Services

FOLDER = PROJECT / "docs" / "pictures"
STATEMENT = (
    "SELECT window_start, region, sales FROM serve.sales_per_region "
    "WHERE window_start > now() - INTERVAL 3 HOURS ORDER BY window_start LIMIT 300"
)
PAGES = {
    "home": "/", "jobs": "/jobs", "releases": "/releases", "table": "/tables/sales_per_region",
    "rows": "/tables/sales_per_region/rows", "topic": "/topics/orders",
    "quarantine": "/topics/orders/quarantine", "audit": "/audit", "queries": "/queries",
    "release": "/releases/1", "act": "/tables/sales_per_region/rebuild",
}  # fmt: skip
FIRST = {
    "plan": ("/releases", "main a[href^='/plans/']"), "job": ("/jobs", "main a[href^='/jobs/']"),
    "explain": ("/tables/sales_per_region/rows", "main a[href*='/explain']"),
}  # fmt: skip
"""What the first link of this sort on a page leads to."""
SIZE = (1000, 900)
TALL = dict.fromkeys(("home", "table", "plan", "query"), (1000, 1740))
"""Of pages whose plots are further down."""
SETTLED_S = 11.0
"""All services have been asked by then."""
PLOTTED_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args()
    services = Services.load(given.home / "services.json")
    with TemporaryDirectory() as folder:
        browser = started(Path(folder) / "profile", SIZE)
        try:
            _all(browser, services)
        finally:
            browser.quit()


def _all(browser: webdriver.Chrome, services: Services) -> None:
    browser.get(f"{services.console_url}/sign-in")
    browser.save_screenshot(str(FOLDER / "console_sign_in.png"))
    browser.switch_to.active_element.send_keys(services.console_user, Keys.TAB)
    browser.switch_to.active_element.send_keys(services.console_password, Keys.ENTER)
    time.sleep(SETTLED_S)
    for name, path in PAGES.items():
        _picture(browser, name, services.console_url + path)
    for name, (path, link) in FIRST.items():
        browser.get(services.console_url + path)
        _picture(browser, name, str(browser.find_element("css selector", link).get_attribute("href")))
    browser.set_window_size(*TALL["query"])
    browser.get(f"{services.console_url}/query")
    browser.find_element("id", "sql").send_keys(STATEMENT)
    browser.find_element("css selector", "main form button").click()
    time.sleep(SETTLED_S)
    browser.save_screenshot(str(FOLDER / "console_query.png"))


def _picture(browser: webdriver.Chrome, name: str, address: str) -> None:
    browser.set_window_size(*TALL.get(name, SIZE))
    browser.get(address)
    time.sleep(PLOTTED_S)
    browser.save_screenshot(str(FOLDER / f"console_{name}.png"))


if __name__ == "__main__":
    main()
