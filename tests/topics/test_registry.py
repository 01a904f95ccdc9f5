"""The edge to the registry, on what it does when the registry answers, refuses, or does not answer."""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import judge
from tests.registry import FakeRegistry
from twinlake.base.errors import DeniedError, DifferenceError, UnreachableError, UsageError
from twinlake.base.protoc import MOST_IMPORTS
from twinlake.config.login import RegistryLogin
from twinlake.services.certificates import BROKER, Certificates
from twinlake.topics.registry import Registry

SUBJECT = "orders-value"
REFUSED = (
    "io.apicurio.registry.rules.violation.RuleViolationException: Incompatible artifact: "
    "orders-value [AVRO], num of incompatible diffs: {1}, list of diff types: [note at /fields/2]"
)
"""Apicurio 3.3.3, word for word."""


def schema(*fields: str) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": one, "type": "long"} for one in fields]}


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    found = FakeRegistry()
    yield found
    found.close()


@pytest.fixture
def registry(server: FakeRegistry) -> Registry:
    return Registry(server.url)


def test_schemas_are_known_by_id(server: FakeRegistry, registry: Registry) -> None:
    server.add(SUBJECT, 5, schema("a"))
    server.add("payments-value", 6, schema("p"))
    server.add(SUBJECT, 9, schema("a", "b"))

    assert registry.schemas(SUBJECT) == {5: schema("a"), 9: schema("a", "b")}


@pytest.fixture
def usual_depth() -> Iterator[None]:
    """As deep as Python goes where nobody has asked for more: other tests of the process have."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_depth")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"type": "object", "maximum": ' + "9" * 5000 + "}", None), ("[" * 100_000 + "]" * 100_000, None),
        ("{", None), ("true", True), ('{"a": 1}', {"a": 1}),
    ],
    ids=["long", "deep", "no JSON", "true", "object"],
)  # fmt: skip
def test_a_schema_that_cannot_be_read_here_leaves_the_others_alone(
    server: FakeRegistry, registry: Registry, text: str, said: Any
) -> None:
    server.add(SUBJECT, 5, schema("a"))
    server.add(SUBJECT, 6, {"schemaType": "JSON", "schema": text})

    assert registry.schemas(SUBJECT) == {
        5: schema("a"), 6: {"schemaType": "JSON", "schema": text if said is None else said},
    }  # fmt: skip


def test_the_short_form_of_a_type_is_a_schema(server: FakeRegistry, registry: Registry) -> None:
    server.subjects[SUBJECT] = [(5, "string"), (6, ["int", "string"])]  # type: ignore[list-item]

    assert registry.schemas(SUBJECT) == {5: {"type": "string"}, 6: {"type": ["int", "string"]}}


def test_more_imports_than_a_schema_may_have_are_not_fetched_for_ever(
    server: FakeRegistry, registry: Registry
) -> None:
    def importing(number: int) -> dict[str, Any]:
        name = f"{number + 1}.proto"
        references = [{"name": name, "subject": name, "version": 1}]
        return {"schemaType": "PROTOBUF", "schema": "", "references": references}

    server.add(SUBJECT, 5, importing(0))
    for number in range(1, 1000):
        server.add(f"{number}.proto", 5 + number, importing(number))

    (said,) = registry.schemas(SUBJECT).values()

    assert len(said["imports"]) == MOST_IMPORTS + 1


def test_a_registry_that_was_wiped_is_believed_and_not_what_was_seen_before(
    server: FakeRegistry, registry: Registry
) -> None:
    server.add(SUBJECT, 5, schema("a"))
    before = registry.schemas(SUBJECT), registry.schema(5)
    server.subjects = {SUBJECT: [(5, schema("b")), (6, schema("c"))]}

    assert before == ({5: schema("a")}, schema("a"))
    assert registry.schemas(SUBJECT) == {5: schema("b"), 6: schema("c")}
    assert [registry.schema(number) for number in (5, 6, 7)] == [schema("b"), schema("c"), None]


def test_what_a_caller_does_to_its_schemas_stays_with_the_caller(
    server: FakeRegistry, registry: Registry
) -> None:
    server.add(SUBJECT, 5, schema("a"))
    registry.schemas(SUBJECT)[5].clear()

    assert registry.schemas(SUBJECT) == {5: schema("a")}


def test_a_subject_that_nobody_registered_has_no_schemas(registry: Registry) -> None:
    assert registry.schemas("nobody-value") == {}


def test_a_subject_is_made_backward_compatible_before_its_schema_is_registered(
    server: FakeRegistry, registry: Registry
) -> None:
    assert registry.register(SUBJECT, schema("a")) == 1
    assert server.compatibility == {SUBJECT: "BACKWARD"}
    assert server.asked == [
        f"GET /config/{SUBJECT}", "GET /config", f"PUT /config/{SUBJECT}",
        f"POST /subjects/{SUBJECT}/versions",
    ]  # fmt: skip
    assert registry.schemas(SUBJECT) == {1: schema("a")}


@pytest.mark.parametrize("of", [SUBJECT, ""], ids=["of the subject", "of everything"])
def test_a_rule_that_is_stricter_is_left_as_it_is(server: FakeRegistry, registry: Registry, of: str) -> None:
    server.compatibility = {of: "FULL_TRANSITIVE"}

    registry.register(SUBJECT, schema("a"))

    assert server.compatibility == {of: "FULL_TRANSITIVE"}


def test_a_registry_that_asks_who_we_are_is_told(server: FakeRegistry) -> None:
    server.login = ("twin", "l:ake")
    server.add(SUBJECT, 5, schema("a"))
    login = RegistryLogin(url=server.url, username="twin", password="l:ake")

    assert Registry(login).schemas(SUBJECT) == {5: schema("a")}
    oracles = judge.Registry(url=server.url, login=("twin", "l:ake"))
    assert judge.writer_schemas(oracles, SUBJECT) == {5: schema("a")}


@pytest.mark.parametrize("username", ["", "twin"])
def test_a_registry_that_lets_us_do_nothing_is_told_apart_from_one_away(
    server: FakeRegistry, username: str
) -> None:
    server.login = ("twin", "lake")
    login = RegistryLogin(url=server.url, username=username, password="wrong-one")

    with pytest.raises(DeniedError, match=login.who) as refused:
        Registry(login).schemas(SUBJECT)

    assert "HTTP 401: who are you?" in refused.value.why and "wrong-one" not in str(refused.value)
    assert "wrong-one" not in repr(login)


def test_a_registry_is_spoken_to_over_tls_where_its_certificate_is_trusted(
    server: FakeRegistry, tmp_path: Path
) -> None:
    held, others = Certificates(tmp_path / "tls"), Certificates(tmp_path / "others")
    held.make()
    others.make()
    server.speak_tls(held.certificate(BROKER), held.key(BROKER))
    server.login = ("twin", "lake")
    server.add(SUBJECT, 5, schema("a"))

    def login(ca_file: Path | None) -> RegistryLogin:
        return RegistryLogin(url=server.url, username="twin", password="lake", ca_file=ca_file)

    assert Registry(login(held.authority)).schemas(SUBJECT) == {5: schema("a")}
    oracles = judge.Registry(url=server.url, login=("twin", "lake"), ca_file=str(held.authority))
    assert judge.writer_schemas(oracles, SUBJECT) == {5: schema("a")}
    for other in (others.authority, None):
        with pytest.raises(DeniedError, match="no trusted connection") as refused:
            Registry(login(other)).schemas(SUBJECT)
        assert "ca_file in [registry]" in refused.value.remedy
    with pytest.raises(UsageError, match="holds no certificates"):
        Registry(login(held.key(BROKER)))


def test_a_new_password_in_its_file_holds_at_once(tmp_path: Path) -> None:
    file = tmp_path / "password"
    told = {"username": "u", "password_file": str(file)}
    file.write_text("one\n")
    before = RegistryLogin.of("http://r", told)
    file.write_text("two")

    assert (before.password, RegistryLogin.of("http://r", told).password) == ("one", "two")


def test_a_schema_that_is_registered_answers_with_its_id(server: FakeRegistry, registry: Registry) -> None:
    server.add(SUBJECT, 5, schema("a"))
    server.add(SUBJECT, 9, schema("a", "b"))

    assert [registry.register(SUBJECT, schema("a")) for _ in range(2)] == [5, 5]


def test_an_id_comes_from_the_registry_and_not_from_memory(server: FakeRegistry, registry: Registry) -> None:
    server.add(SUBJECT, 5, schema("a"))
    registry.schemas(SUBJECT)
    server.subjects = {"payments-value": [(7, schema("p"))]}

    assert registry.register(SUBJECT, schema("a")) == 8
    assert registry.schemas(SUBJECT) == {8: schema("a")}


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [(409, 409, REFUSED), (422, 42201, "Failed to discover artifact type from content.")],
)
def test_a_refused_schema_is_told_in_the_words_of_the_registry(
    server: FakeRegistry, registry: Registry, status: int, code: int, reason: str
) -> None:
    server.refusal = status, {"error_code": code, "message": reason}

    with pytest.raises(DifferenceError) as error:
        registry.register(SUBJECT, schema("note"))

    assert error.value.why == reason
    assert SUBJECT in error.value.what and "default" in error.value.remedy
    assert "start it with another topic" in error.value.remedy


def test_a_refusal_without_a_reason_is_told_as_one(server: FakeRegistry, registry: Registry) -> None:
    server.refusal = 409, {}

    with pytest.raises(DifferenceError) as error:
        registry.register(SUBJECT, schema("note"))

    assert error.value.why == "it is not BACKWARD compatible with the newest one"


def test_a_registry_that_fails_is_asked_once_and_told_with_its_reason(
    server: FakeRegistry, registry: Registry
) -> None:
    server.down = True

    with pytest.raises(UnreachableError, match="did not answer") as error:
        registry.schemas(SUBJECT)

    assert error.value.why == "orders-value: HTTP 503: down"
    assert server.calls == 1


def test_what_was_seen_before_is_no_answer_when_the_registry_is_down(
    server: FakeRegistry, registry: Registry
) -> None:
    server.add(SUBJECT, 5, schema("a"))
    registry.schemas(SUBJECT)
    server.down = True

    with pytest.raises(UnreachableError):
        registry.schemas(SUBJECT)
    with pytest.raises(UnreachableError):
        registry.register(SUBJECT, schema("a"))


def test_a_port_where_nobody_listens_is_told_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        registry = Registry(f"http://127.0.0.1:{unused.getsockname()[1]}")

        with pytest.raises(UnreachableError, match="did not answer") as error:
            registry.schemas(SUBJECT)
        with pytest.raises(UnreachableError, match="did not answer"):
            registry.register(SUBJECT, schema("a"))

    assert "refused" in error.value.why
    assert caplog.records == []


def test_a_registry_that_says_nothing_is_waited_for_until_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        registry = Registry(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.1)
        asked_at = time.monotonic()

        with pytest.raises(UnreachableError, match="did not answer") as error:
            registry.schemas(SUBJECT)

    assert error.value.why == "timed out"
    assert time.monotonic() - asked_at < 3


@pytest.mark.parametrize(
    "garbage",
    [b"<html>hello</html>", b"", b"\xff", b"null", b"7", b'"up"', b'["one"]', b'{"status": "up"}', b"[[1]]"],
)
def test_something_else_on_the_port_is_no_registry(
    server: FakeRegistry, registry: Registry, garbage: bytes
) -> None:
    server.garbage = garbage

    with pytest.raises(UnreachableError, match="did not answer"):
        registry.schemas(SUBJECT)
    with pytest.raises(UnreachableError, match="did not answer"):
        registry.register(SUBJECT, schema("a"))


def test_a_url_with_another_path_is_no_registry_without_the_subject(server: FakeRegistry) -> None:
    with pytest.raises(UnreachableError) as error:
        Registry(f"{server.url}/elsewhere").schemas(SUBJECT)

    assert "HTTP 404" in error.value.why and "no such page" in error.value.why


@pytest.mark.parametrize("url", ["", "registry:8081", "http://[::1", "http://127.0.0.1:99999999"])
def test_a_url_that_is_none_is_an_unreachable_registry(url: str) -> None:
    with pytest.raises(UnreachableError, match="did not answer"):
        Registry(url).schemas(SUBJECT)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_not_used(
    server: FakeRegistry, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for no_proxy in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(no_proxy, raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.add(SUBJECT, 5, schema("a"))

    assert Registry(server.url).schemas(SUBJECT) == {5: schema("a")}
