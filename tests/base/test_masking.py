"""A secret is taken out of a text in whatever form it stands there, and what is left is found."""

from __future__ import annotations

import base64
import json
import random
import secrets
import string
import time
from urllib.parse import quote, quote_plus

import pytest

from twinlake.base.masking import MASK, Masker, forms

AWKWARD = 'p"a\\s ü%+/=&s#w:o@rd'
KEY = "Zq3vX0aB-9_fGhJkLmNoPqRsTuVwXyZ012345678"


def masked(secret: str, text: str) -> str:
    return Masker({"it": secret}).mask(text)


def written(secret: str, amid: tuple[str, str]) -> dict[str, str]:
    """The secret as somebody may have written it in the middle of something."""
    before, after = amid
    raw = secret.encode()
    return {
        "as it is": f"{before}{secret}{after}",
        "JSON": json.dumps({"note": f"{before}{secret}{after}"}),
        "JSON, not ASCII": json.dumps({"note": f"{before}{secret}{after}"}, ensure_ascii=False),
        "Python": repr([f"{before}{secret}{after}"]),
        "URL": f"/a?b={quote(before)}{quote(secret, safe='')}{quote(after)}",
        "form": f"b={quote_plus(before + secret + after)}",
        "small hex": f"b={quote(secret, safe='').lower() if secret.islower() else quote(secret, safe='')}",
        "UTF-16": (before + secret + after).encode("utf-16-le").decode("latin-1")
        if secret.isascii() else secret,
        **{f"base64 after {many}": base64.b64encode(b"u:x"[:many] + raw + after.encode()).decode()
           for many in range(4)},
        "urlsafe": base64.urlsafe_b64encode(b"ab" + raw + b"cd").decode(),
    }  # fmt: skip


@pytest.mark.parametrize("secret", [AWKWARD, KEY, "correct horse battery staple", "hunter22"])
@pytest.mark.parametrize("amid", [("", ""), ("user=x;", ";end"), ("abc", "xyz")])
def test_it_goes_in_every_form_and_is_found_before(secret: str, amid: tuple[str, str]) -> None:
    masker = Masker({"it": secret})
    for form, text in written(secret, amid).items():
        assert masker.left_in(text.encode()) == ["it"], form
        after = masker.mask(text)
        assert masker.left_in(after.encode()) == [] and secret not in after and MASK in after, form


def test_random_secrets_go_out_of_random_texts() -> None:
    draw = random.Random(7)
    letters = string.ascii_letters + string.digits + string.punctuation + "äß "
    for _ in range(200):
        secret = "".join(draw.choices(letters, k=draw.randint(6, 60))).strip() or "secret"
        noise = ["".join(draw.choices(letters + "\n", k=draw.randint(0, 80))) for _ in range(2)]
        for form, text in written(secret, (noise[0], noise[1])).items():
            after = masked(secret, text)
            assert Masker({"it": secret}).left_in(after.encode()) == [], (secret, form, text, after)


def test_of_one_that_was_cut_off_the_beginning_goes_too() -> None:
    for many in (12, 20, len(KEY) - 1):
        line = f"the token {KEY[:many]}"
        assert masked(KEY, line) == f"the token {MASK}"
        assert Masker({"it": KEY}).left_in(line.encode()) == ["it"]


def test_a_short_one_goes_where_it_is_a_word() -> None:
    assert masked("pw", "user pw, spwx, (pw)") == f"user {MASK}, spwx, ({MASK})"
    assert Masker({"it": "pw"}).left_in(b"spwx") == []


def test_of_two_of_which_one_begins_the_other_nothing_is_left() -> None:
    masker = Masker({"a": "hunter22", "b": "hunter22-and-more"})
    assert masker.mask("x hunter22-and-more hunter22 y") == f"x {MASK} {MASK} y"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ('{"api_token": "was-another"}', f'{{"api_token": "{MASK}"}}'),
        ("password=old;user=anna", f"password={MASK};user=anna"),
        ("sasl.jaas.config password=\\\"old-one\\\";", f"sasl.jaas.config password=\\\"{MASK}\\\";"),
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: Bearer {MASK}"),
        ("https://anna:old@host/x", f"https://anna:{MASK}@host/x"),
        ("password_file = /etc/twinlake/kafka", "password_file = /etc/twinlake/kafka"),
        ('{"password": null, "tokens": 7}', '{"password": null, "tokens": 7}'),
    ],
)  # fmt: skip
def test_what_stands_where_secrets_do_goes_though_nobody_knows_it(line: str, after: str) -> None:
    assert Masker({}).mask(line) == after


@pytest.mark.parametrize("text", ["x", "a=://", "password", "://a:", "Bearer ", "password=", "\\"])
def test_a_line_of_megabytes_takes_seconds(text: str) -> None:
    masker = Masker({str(number): secrets.token_urlsafe(24) for number in range(30)})
    began = time.process_time()
    masker.left_in(masker.mask(text * (1_000_000 // len(text))).encode())
    assert time.process_time() - began < 10


def test_other_text_is_left_as_it_is() -> None:
    text = "".join(random.Random(3).choices(string.printable, k=100_000)).replace("@", "")
    masker = Masker({str(number): secrets.token_urlsafe(24) for number in range(30)})

    assert masker.mask(text) == Masker({}).mask(text) and masker.left_in(text.encode()) == []
    assert masker.longest == max(len(form) for one in masker.secrets.values() for form in forms(one))
