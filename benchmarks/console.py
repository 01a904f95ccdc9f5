"""What an open Home costs: CPU-seconds of the console, and of all services, in a minute with and without.

`python -m benchmarks.console --home HOME` asks services that run, as a browser with Home open does.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import httpx
import psutil

from twinlake.config.settings import Services
from twinlake.services.supervise.process import MARK

EVERY_S = 5.0
"""As `static/console.js` has it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--browsers", type=int, default=1)
    given = parser.parse_args()
    services = Services.load(given.home / "services.json")
    for title, count in (("no browser", 0), (f"{given.browsers} with Home open", given.browsers)):
        browsers = [_signed_in(services) for _ in range(count)]
        before, began = _cpu(given.home), time.monotonic()
        while time.monotonic() - began < given.seconds:
            for browser in browsers:
                browser.get("/part/home").raise_for_status()
            time.sleep(EVERY_S)
        took, after = time.monotonic() - began, _cpu(given.home)
        spent = {name: after[name] - before.get(name, 0.0) for name in after}
        others = sum(seconds for name, seconds in spent.items() if name != "console")
        print(f"{title}: console {spent['console']:.2f} CPU-seconds in {took:.0f} s "
              f"({spent['console'] / took:.4f} cores), all others {others:.2f}")  # fmt: skip


def _signed_in(services: Services) -> httpx.Client:
    browser = httpx.Client(base_url=services.console_url, follow_redirects=True, timeout=60, trust_env=False)
    token = re.search(r'name="form_token" value="([^"]+)"', browser.get("/sign-in").text)
    assert token
    sent = {"form_token": token[1], "name": services.console_user, "password": services.console_password}
    assert browser.post("/sign-in", data=sent).url.path == "/"
    return browser


def _cpu(home: Path) -> dict[str, float]:
    """CPU-seconds so far by part."""
    found: dict[str, float] = {}
    for process in psutil.process_iter():
        try:
            part, _, of = process.environ().get(MARK, "").partition("@")
            if of == str(home):
                times = process.cpu_times()
                found[part] = found.get(part, 0.0) + times.user + times.system
        except psutil.Error:
            continue
    return found


if __name__ == "__main__":
    main()
