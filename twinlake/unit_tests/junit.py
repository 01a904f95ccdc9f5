"""Writes the outcomes of cases as JUnit's XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from twinlake.base.errors import TwinlakeError, visible
from twinlake.base.files import replace_file, shown_path
from twinlake.unit_tests.running import Outcome


def write(file: Path, outcomes: Sequence[Outcome], wrong: Sequence[TwinlakeError], seconds: float) -> None:
    """One suite: a case that failed has a failure, a mistake in a file is an error."""
    errors = sum(one.mistake is not None for one in outcomes) + len(wrong)
    suite = ElementTree.Element(
        "testsuite", name="twinlake", tests=str(len(outcomes) + len(wrong)), skipped="0",
        failures=str(sum(bool(one.failure) for one in outcomes)), errors=str(errors), time=f"{seconds:.3f}",
    )  # fmt: skip
    for one in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=one.case.table, name=one.case.name, time=f"{one.seconds:.3f}",
            file=shown_path(one.case.file), line=str(one.case.line),
        )  # fmt: skip
        if one.mistake is not None:
            _said(case, "error", str(one.mistake))
        elif one.failure:
            _said(case, "failure", one.failure)
    for number, error in enumerate(wrong, start=1):
        case = ElementTree.SubElement(suite, "testcase", classname="files", name=f"file {number}", time="0")
        _said(case, "error", str(error))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    replace_file(file, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def _said(case: ElementTree.Element, what: str, text: str) -> None:
    """The first line is what a list shows; control characters have no place in XML."""
    lines = [visible(line) for line in text.splitlines()]
    said = ElementTree.SubElement(case, what, message=lines[0] if lines else "")
    said.text = "\n".join(lines)
