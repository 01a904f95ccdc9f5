"""What a scrape holds, as Prometheus' own parser reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, kw_only=True)
class Scraped:
    """`families` are the names that were declared; `samples` by name and labels."""

    text: str
    families: Mapping[str, str]
    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def having(self, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        """All samples of that name that have these labels among theirs."""
        return {
            of: value
            for (found, of), value in self.samples.items()
            if found == name and of >= labels.items()
        }  # fmt: skip

    def active(self, name: str, last: str, **labels: str) -> list[str]:
        """The values of that label of the samples that are 1."""
        return [dict(of)[last] for of, value in self.having(name, **labels).items() if value == 1]


def parsed(text: str) -> Scraped:
    families, samples = {}, {}
    for family in text_string_to_metric_families(text):
        families[f"{family.name}_total" if family.type == "counter" else family.name] = family.type
        for one in family.samples:
            key = (one.name, frozenset(one.labels.items()))
            assert key not in samples, f"{key} twice"
            samples[key] = one.value
    return Scraped(text=text, families=families, samples=samples)


def get(url: str, auth: tuple[str, str] | None = None, **headers: str) -> httpx.Response:
    return httpx.get(url, auth=auth, headers=headers, timeout=20, trust_env=False)


def scrape(url: str, auth: tuple[str, str]) -> Scraped:
    return parsed(get(url, auth).raise_for_status().text)
