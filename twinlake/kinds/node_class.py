"""The classes of Spark's nodes: what the JVM was once asked about a class is known of all nodes of it.

A definition has hundreds of nodes of a few dozen classes, and each question is a call into another process.
"""

from __future__ import annotations

from typing import Any

_simple_names: dict[str, str] = {}
_instances: dict[tuple[str, str], bool] = {}


def full_name(node: Any) -> str:
    """The name of its class with the package."""
    return str(node.getClass().getName())


def simple_name(node: Any, full: str | None = None) -> str:
    """The name of its class alone; `full` is the one with the package where it is known."""
    full = full or full_name(node)
    found = _simple_names.get(full)
    if found is None:
        found = _simple_names[full] = str(node.getClass().getSimpleName())
    return found


def is_a(node: Any, of: str, full: str | None = None) -> bool:
    """Whether it is an instance of the class or trait `of`; `full` is its own class's name where known."""
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    key = full or full_name(node), of
    found = _instances.get(key)
    if found is None:
        gateway = SparkContext._active_spark_context._gateway  # type: ignore[union-attr]
        found = _instances[key] = bool(is_instance_of(gateway, node, of))
    return found
