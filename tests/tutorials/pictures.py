"""Takes the pictures of tutorials anew, as each page is followed: `python -m tests.tutorials.pictures`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.project import PROJECT
from tests.tutorials.reader import Reader
from tests.tutorials.steps import Picture, steps

PAGES = PROJECT / "docs" / "tutorials"


def main() -> None:
    for page in sorted(PAGES.glob("*.md")):
        found = steps(page.read_text(), is_notebook=page.with_suffix(".ipynb").exists())
        if any(isinstance(step, Picture) for step in found):
            with tempfile.TemporaryDirectory() as folder:
                reader = Reader(Path(folder), takes=True)
                try:
                    for step in found:
                        print(step, file=sys.stderr)
                        reader.do(step)
                finally:
                    reader.end()


if __name__ == "__main__":
    main()
