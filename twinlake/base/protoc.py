"""Owns the compiling of a Protobuf schema's text: by protoc itself, in a process of its own.

A registry may have a schema as its text, or, as Confluent's serializers for Python register it, as a compiled
file in base64. What it imports is given by name; Google's own types are known.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from twinlake.base.errors import ContractError, TimedOutError

KNOWN = "google/protobuf/"
_NAME = "twinlake.schema.proto"
_LONGEST_S = 60
MOST_IMPORTS = 200
_NOTICE = re.compile(r"[WI]\d{4} |WARNING:|.*\bwarning:")
"""How a line of protoc begins that is no error."""
_MODULES = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
    "type", "wrappers",
)  # fmt: skip


def compiled(text: str, imports: Mapping[str, str], file: str) -> Any:
    """The schema's FileDescriptor; ContractError with protoc's own words for a text that is none. What a
    registry has as one of Google's own files is not looked at: that one is known."""
    given = tuple(sorted((name, said) for name, said in imports.items() if not name.startswith(KNOWN)))
    found = _compiled(text, given)
    if isinstance(found, ContractError):
        raise ContractError(file, found.path, found.why_text, found.remedy, found.place)
    return found


@lru_cache(maxsize=256)
def _compiled(text: str, imports: tuple[tuple[str, str], ...]) -> Any:
    """The same, or the error, of which a broken schema is told again at each look into the registry."""
    try:
        from google.protobuf import descriptor_pool
    except ImportError:
        return _missing()
    pool = descriptor_pool.DescriptorPool()
    try:
        if len(imports) > MOST_IMPORTS:
            raise ValueError(f"it imports {len(imports)} files, and {MOST_IMPORTS} at most are read")
        if serialized(text) is not None:
            return _added(pool, text, dict(imports), set())
        for one in _by_protoc(text, dict(imports)):
            pool.Add(one)
        return pool.FindFileByName(_NAME)
    except ContractError as error:
        return error
    except (OSError, TypeError, KeyError, ValueError) as error:
        why = f"it cannot be compiled: {error}"
        return ContractError("", "", why, "register the text of the .proto file")


def serialized(text: str) -> Any:
    """The FileDescriptorProto that a text is in base64; None for a text that is a schema."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        raw = base64.b64decode(text, validate=True)
        return FileDescriptorProto.FromString(raw) if raw else None
    except (binascii.Error, ValueError, DecodeError):
        return None


def _added(pool: Any, text: str, imports: Mapping[str, str], known: set[str]) -> Any:
    """A compiled file in the pool, with all that it imports."""
    found = serialized(text)
    if found is None:
        raise ValueError("what it imports is not compiled")
    for name in found.dependency:
        if name in known:
            continue
        known.add(name)
        if name.startswith(KNOWN):
            _add_known(pool, name)
        elif name in imports:
            _added(pool, imports[name], imports, known)
        else:
            raise ValueError(f"it imports {name}, which the registry does not name")
    if found.name.startswith(KNOWN):
        raise ValueError(f"its name is {found.name}, which is a file of Google's")
    pool.Add(found)
    return pool.FindFileByName(found.name)


def _add_known(pool: Any, name: str) -> None:
    from importlib import import_module

    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    stem = name.removeprefix(KNOWN).removesuffix(".proto")
    if stem not in _MODULES:
        raise ValueError(f"it imports {name}, which is not known here")
    copied = FileDescriptorProto()
    import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR.CopyToProto(copied)
    for one in copied.dependency:
        _add_known(pool, one)
    pool.Add(copied)


def _by_protoc(text: str, imports: Mapping[str, str]) -> list[Any]:
    """The compiled files, what is imported first."""
    try:
        import grpc_tools
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
    except ImportError:
        raise _missing() from None
    known = Path(grpc_tools.__file__).parent / "_proto"
    with TemporaryDirectory(prefix="twinlake-proto-") as folder:
        root, made = Path(folder).resolve() / "files", Path(folder) / "made"
        for name, said in {**imports, _NAME: text}.items():
            _refuse_name(name)
            target = root / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(said, "utf-8")
            except OSError as error:
                why = f"{name[:100]!r} is no name of a file: {error.strerror}"
                raise ContractError("", "import", why, "register it under another") from error
        command = [
            sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{root}", f"-I{known}", "--include_imports",
            f"--descriptor_set_out={made}", _NAME,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise _ended(f"it took longer than {_LONGEST_S} s") from error
        said = done.stderr.decode(errors="replace").replace(f"{root}/", "")
        if done.returncode < 0:
            raise _ended(f"it was ended by signal {-done.returncode}: {said[-300:]}")
        if done.returncode:
            raise _refused(said)
        return list(FileDescriptorSet.FromString(made.read_bytes()).file)


def _refuse_name(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ContractError("", "import", f"{name!r} is no name of a file", "register it under another")


def _refused(said: str) -> ContractError:
    """In protoc's words, with its line and column where it says them."""
    lines = [line for line in said.splitlines() if not _NOTICE.match(line)] or [said]
    place = None
    parts = lines[0].split(":", 3)
    if len(parts) == 4 and parts[0] == _NAME and parts[1].isdigit() and parts[2].isdigit():
        place, lines[0] = (int(parts[1]), int(parts[2])), parts[3].strip()
    why = f"protoc refuses it: {lines[0][:500]}"
    steps = "correct the file; a topic's own may import Google's own types alone"
    return ContractError("", "", why, steps, place)


def _ended(why: str) -> TimedOutError:
    """Of protoc and not of the schema: another try may read it."""
    steps = "see what else the machine is doing"
    return TimedOutError(what="protoc did not read a schema", why=why, remedy=steps)


def _missing() -> ContractError:
    why = "a schema of Protobuf cannot be read here: protobuf and grpcio-tools are not installed"
    return ContractError("", "", why, "install twinlake[server]")
