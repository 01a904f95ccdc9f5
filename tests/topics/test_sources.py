"""What draws sample records is what a project's files say now."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from tests.project import project_in
from twinlake.topics.records import sources_of

TEXTS = {
    "records.py": "from shop_topics import NAME\nSOURCES = {'one': print, NAME: print}\n",
    "shop_topics.py": "NAME = 'one_more'\n",
}


@pytest.mark.parametrize("edited", TEXTS)
def test_a_file_of_the_same_size_and_second_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)

    def put(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1_770_000_000, 1_770_000_000))

    def topics() -> list[str]:
        monkeypatch.delitem(sys.modules, "shop_topics", raising=False)
        return [*sources_of(project_in(tmp_path))]

    for name, text in TEXTS.items():
        put(name, text)
        py_compile.compile(str(tmp_path / name), doraise=True)
    assert topics() == ["one", "one_more"]

    put(edited, TEXTS[edited].replace("one", "two"))

    assert sum(name.startswith("two") for name in topics()) == 1
