"""Many tables: what each further one costs. Copies of the sales go live beside the project's tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.platform import Platform
from jobs.tables.sales_per_region import TABLE as SALES
from tests.project import PROJECT, TABLES
from twinlake.kinds.kind import is_stored

STORED = 10
OWN = {table.name: table.to_json() for table in TABLES}
COPIES = [
    replace(SALES, name=f"{SALES.name}_{number}") for number in range(STORED - sum(map(is_stored, TABLES)))
]


def project_with_contracts(folder: Path, copies: Mapping[str, str]) -> Path:
    """The project as it is now, in this folder, with the contracts that copies of its tables, by their names,
    need to go live."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("jobs", "infra", "schemas", "contracts"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "twinlake.toml").write_text("[project]\n")
    for copy, name in copies.items():
        contract = (folder / "contracts" / f"{name}.yaml").read_text()
        (folder / "contracts" / f"{copy}.yaml").write_text(contract.replace(name, copy))
    return folder


@contextmanager
def ten_tables(platform: Platform) -> Iterator[None]:
    """Within it ten tables that store rows are live. Afterwards the copies are retired."""
    platform.release(OWN | {copy.name: copy.to_json() for copy in COPIES})
    yield
    platform.release(OWN, remove=[copy.name for copy in COPIES])
    platform.job("retire", {"keep": 1})
