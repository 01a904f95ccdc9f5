"""Table outputs: what goes along with live tables, each by threads of its own.

They are changelogs, published tables and webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinlake.changelog.changelogs import Changelogs
from twinlake.config.settings import Settings
from twinlake.lake.open_lake import OpenLake
from twinlake.published.publications import Publications
from twinlake.server.metrics import CHANGELOG, PUBLISHED, WEBHOOK
from twinlake.webhooks.webhooks import Webhooks

Statuses = Sequence[Mapping[str, Any]]


class TableOutputs:
    """Those of one lake."""

    def __init__(self, settings: Settings, lake_id: str) -> None:
        self.changelogs = Changelogs(settings.lake, lake_id)
        self.publications = Publications(settings.lake, lake_id)
        self.webhooks = Webhooks(settings.lake)

    def begin(self, lake: OpenLake) -> None:
        """Go on with those that are on."""
        for one in (self.changelogs, self.publications, self.webhooks):
            one.begin(lake)

    def end(self) -> None:
        """Make nothing more; they stay on for the next start."""
        for one in (self.changelogs, self.publications, self.webhooks):
            one.end()

    def status(self) -> dict[str, Statuses]:
        """As `/status` shows them."""
        return {
            "changelogs": self.changelogs.status(),
            "published": self.publications.status(),
            "webhooks": self.webhooks.status(),
        }

    def measured(self) -> dict[str, Statuses]:
        """The same by the names that metrics have for them."""
        found = self.status()
        return {
            CHANGELOG: found["changelogs"], PUBLISHED: found["published"], WEBHOOK: found["webhooks"]
        }  # fmt: skip
