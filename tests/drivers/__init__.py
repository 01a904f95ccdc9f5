"""Drivers of readers and clients of producers, in an environment and a folder of their own: no version of
theirs meets the product's."""

from twinlake.setup import jars

FOLDER = jars.JARS / "drivers"
NODE = FOLDER / "node"
"""Where `node` and `npm` are."""
