"""An entry in Airflow's navigation that opens Twinlake's console; none unless $TWINLAKE_CONSOLE_URL is set.

Airflow reads this file by itself: it needs nothing else of Twinlake.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

URL = os.environ.get("TWINLAKE_CONSOLE_URL", "").strip()


class TwinlakeConsole(AirflowPlugin):
    """The console in a page of its own: it lets no other page frame it."""

    name = "twinlake_console"
    external_views: ClassVar[list[dict[str, Any]]] = (
        [{"name": "Twinlake", "href": URL, "destination": "nav"}]
        if URL.startswith(("http://", "https://"))
        else []
    )
