"""A Protobuf schema's text is whatever a producer has registered: it is read, or refused with words."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from twinlake.base.errors import ContractError, TimedOutError
from twinlake.base.protoc import MOST_IMPORTS, compiled

HEAD = 'syntax = "proto3";\n'
THING = "message Thing { string a = 1; }"


def serialized(name: str, *imports: str, message: str = "") -> str:
    file = FileDescriptorProto(name=name, syntax="proto3", dependency=imports)
    if message:
        file.message_type.add(name=message).field.add(name="a", number=1, type=9, label=1)
    return base64.b64encode(file.SerializeToString()).decode()


def refused(text: str, imports: dict[str, str] | None = None) -> ContractError:
    with pytest.raises(ContractError) as caught:
        compiled(text, imports or {}, "things")
    assert caught.value.file == "things" and caught.value.remedy
    return caught.value


@pytest.mark.parametrize("way", ["{0}", "../../../../../../../../..{0}", "/{0}", "file://{0}", "./{0}"])
def test_no_file_is_read_but_what_the_schema_imports_by_the_registry(tmp_path: Path, way: str) -> None:
    other = tmp_path / "other.proto"
    other.write_text(f"{HEAD}message Secret {{ string a = 1; }}")

    why = refused(f'{HEAD}import "{way.format(other)}"; message Thing {{ Secret a = 1; }}').why_text

    assert "File not found" in why or "are not allowed in the virtual path" in why


@pytest.mark.parametrize(
    "name", ["../a.proto", "/tmp/twinlake-a.proto", ".", "", "a" * 300, "a\0b", "a/b/c/../../d.proto"]
)
def test_what_is_imported_is_written_nowhere_else(name: str) -> None:
    refused(HEAD + THING, {name: HEAD})


def test_a_file_that_is_a_folder_of_another_is_refused() -> None:
    assert refused(HEAD + THING, {"a": HEAD, "a/b": HEAD}).path == "import"


def test_nothing_of_the_folder_that_we_are_in_is_run(tmp_path: Path) -> None:
    (tmp_path / "grpc_tools").mkdir()
    (tmp_path / "grpc_tools" / "protoc.py").write_text("open('run', 'w')")
    (tmp_path / "grpc_tools" / "__init__.py").write_text("")
    (tmp_path / "tempfile.py").write_text("open('run', 'w')")
    code = f"from twinlake.base.protoc import compiled; compiled({HEAD + THING!r}, {{}}, '')"

    subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip

    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "imports", "why"),
    [
        (f'{HEAD}import "a"; {THING}', {"a": 'import "b";', "b": 'import "a";'}, "imports itself"),
        (f'{HEAD}import "a"; {THING}', {"a": "no schema"}, "a:1:1: "),
        (f"{HEAD}message Thing {{ string a = 1 }}", {}, "Expected"),
        (f"{HEAD}message Thing {{ string a = 1 [(mine) = 2]; }}", {}, 'Option "(mine)" unknown'),
        (f"{HEAD}{THING} // \ud800", {}, "surrogates not allowed"),
        (f"{HEAD}{'message M {' * 40}{'}' * 40}", {}, "maximum recursion limit"),
        (serialized("m", "0", message="T"), {"0": serialized("0", "1"), "1": serialized("1", "0")}, "'0'"),
        (serialized("m", "0", message="T"), {"0": HEAD}, "not compiled"),
        (serialized("m", "0", message="T"), {}, "which the registry does not name"),
        (serialized("google/protobuf/timestamp.proto", message="T"), {}, "a file of Google's"),
        (f'{HEAD}import "0"; {THING}', {str(one): HEAD for one in range(MOST_IMPORTS + 1)}, "at most"),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled_is_refused_in_the_same_words_each_time(
    text: str, imports: dict[str, str], why: str
) -> None:
    first = refused(text, imports)
    again = refused(f"{text}\n" if text.startswith(HEAD) else text, imports)

    assert why in first.why_text
    assert "/tmp" not in first.why_text and "WARNING" not in first.why_text
    assert first.why_text == again.why_text


def test_the_place_of_a_mistake_is_said() -> None:
    assert refused(f"{HEAD}message Thing {{\n  string a = 1\n}}").place == (4, 1)


def test_a_schema_is_read_whatever_it_imports_is_called() -> None:
    other = f"{HEAD}message Other {{ string b = 1; }}"
    text = f'{HEAD}import "schema.proto"; import "google/protobuf/timestamp.proto"; // \u00e4'

    found = compiled(
        f"{text}\nmessage Thing {{ Other a = 1; google.protobuf.Timestamp at = 2; }}",
        {"schema.proto": other, "google/protobuf/timestamp.proto": "what somebody has registered"}, "",
    )  # fmt: skip

    fields = found.message_types_by_name["Thing"].fields
    assert [one.message_type.full_name for one in fields] == ["Other", "google.protobuf.Timestamp"]


@pytest.mark.parametrize("ended", [subprocess.TimeoutExpired("protoc", 60), -9])
def test_a_protoc_that_is_ended_says_nothing_of_the_schema(
    monkeypatch: pytest.MonkeyPatch, ended: Any
) -> None:
    text = f"{HEAD}message Ended{type(ended).__name__} {{ string a = 1; }}"

    def run(*_: Any, **__: Any) -> Any:
        if isinstance(ended, Exception):
            raise ended
        return subprocess.CompletedProcess([], ended, b"", b"")

    with monkeypatch.context() as patched, pytest.raises(TimedOutError):
        patched.setattr(subprocess, "run", run)
        compiled(text, {}, "")

    assert compiled(text, {}, "").message_types_by_name
