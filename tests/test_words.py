"""Product and docs speak plain English: the words of before do not come back."""

from __future__ import annotations

import pytest

from tests import words


def test_no_old_word_is_in_the_product_or_its_docs(capsys: pytest.CaptureFixture[str]) -> None:
    found = words.main()

    assert found == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "is_code", "word"),
    [
        ("what each reader is told", False, "told"),
        ('"mend the file"', True, "mend"),
        ("It begins Anew.", False, "anew"),
        ("a record that fares otherwise", False, "fares otherwise"),
        ("a Kafka of one's own", False, "of one's own"),
        ("rights that are in force", False, "in force"),
        ("class KeptPlan:", True, "KeptPlan"),
        ("    def doubts(self)", True, "def doubts"),
    ],
)
def test_an_old_word_is_refused_with_its_line(line: str, is_code: bool, word: str) -> None:
    assert [(number, found) for number, found, _ in words.refused(f"\n{line}\n", is_code)] == [(2, word)]


def test_a_sentence_may_begin_with_look_and_a_word_may_hold_an_old_one() -> None:
    assert list(words.refused("Look at it again: amended, untold, recommend", is_code=True)) == []
