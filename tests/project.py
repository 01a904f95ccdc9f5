"""This repository as the project that it is, and its examples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from twinlake.config.project import Project
from twinlake.definitions.loader import load
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.kind import Kind
from twinlake.topics.records import Sources, Wanted, sources_of
from twinlake.topics.sequence import Sequence
from twinlake.topics.topic import load_topic

PROJECT = Path(__file__).resolve().parents[1]
OURS = Project.load(PROJECT)
TABLES = load(OURS).sound()
GALLERY = OURS.examples


def project_in(folder: Path) -> Project:
    """The folder as a project with the usual folders, whether or not it has a twinlake.toml."""
    return Project(root=folder)


@cache
def example_of(name: str) -> Project:
    return Project.load(GALLERY / name)


EXAMPLES: Mapping[str, tuple[Kind, ...]] = {
    name: tuple(ordered(load(example_of(name)).sound())) for name in OURS.example_names()
}
"""Example -> its tables, each after those that it reads."""
SOURCES: Mapping[str, Sources] = {name: sources_of(example_of(name)) for name in EXAMPLES}
"""Example -> topic -> what draws its records."""


def sequence(name: str, topic: str, *, seed: int, run: str, schema_id: int, span_ms: int = 0) -> Sequence:
    """The endless sequence of an example's topic; `schema_id` is what the registry calls its schema."""
    loaded = load_topic(topic, example_of(name))
    wanted = Wanted(topic=loaded, seed=seed, run=run, schemas={schema_id: {}}, span_ms=span_ms)
    made = SOURCES[name][topic](wanted)
    assert isinstance(made, Sequence)
    return made
