"""Takes the pictures of tutorials anew, as each page is followed: `python -m tests.tutorials.pictures`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.tutorials import PAGES
from tests.tutorials.reader import Reader
from tests.tutorials.steps import Picture, of_page


def main() -> None:
    for page in PAGES:
        found = of_page(page)
        if any(isinstance(step, Picture) for step in found):
            with tempfile.TemporaryDirectory() as folder, Reader(Path(folder), takes=True) as reader:
                for step in found:
                    print(step, file=sys.stderr)
                    reader.do(step)


if __name__ == "__main__":
    main()
