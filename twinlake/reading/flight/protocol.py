"""Protocol: the messages of Arrow Flight and Flight SQL that the SQL server speaks, by their numbers there.

Of Arrow's Flight.proto and FlightSql.proto, as of Arrow 21; a field that is not here is skipped when it is
read. They are made at run time: code that protoc generates fits one version of its library alone.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from twinlake.base.errors import UsageError

SERVICE = "arrow.flight.protocol.FlightService"
_FLIGHT, _SQL = "arrow.flight.protocol", "arrow.flight.protocol.sql"
_TYPES = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
}
"""An enumeration is an int32 on the wire."""
_KEYS = ("optional string catalog 1", "optional string db_schema 2", "string table 3")
_STATEMENT = ("string query 1", "optional bytes transaction_id 2")
_HANDLE = ("bytes prepared_statement_handle 1",)
_MESSAGES: dict[str, dict[str, tuple[str, ...]]] = {
    _FLIGHT: {
        "HandshakeResponse": (),
        "ActionType": ("string type 1", "string description 2"),
        "Action": ("string type 1", "bytes body 2"),
        "Result": ("bytes body 1",),
        "SchemaResult": ("bytes schema 1",),
        "FlightDescriptor": ("int32 type 1", "bytes cmd 2"),
        "Ticket": ("bytes ticket 1",),
        "FlightEndpoint": ("Ticket ticket 1",),
        "FlightInfo": (
            "bytes schema 1", "FlightDescriptor flight_descriptor 2", "repeated FlightEndpoint endpoint 3",
            "int64 total_records 4", "int64 total_bytes 5",
        ),
        "FlightData": ("FlightDescriptor flight_descriptor 1", "bytes data_header 2", "bytes data_body 1000"),
        "PutResult": ("bytes app_metadata 1",),
        "CancelFlightInfoRequest": ("FlightInfo info 1",),
        "CancelFlightInfoResult": ("int32 status 1",),
    },
    _SQL: {
        "CommandGetSqlInfo": ("repeated uint32 info 1",),
        "CommandGetXdbcTypeInfo": ("optional int32 data_type 1",),
        "CommandGetCatalogs": (),
        "CommandGetDbSchemas": ("optional string catalog 1", "optional string db_schema_filter_pattern 2"),
        "CommandGetTables": (
            "optional string catalog 1", "optional string db_schema_filter_pattern 2",
            "optional string table_name_filter_pattern 3", "repeated string table_types 4",
            "bool include_schema 5",
        ),
        "CommandGetTableTypes": (),
        "CommandGetPrimaryKeys": _KEYS,
        "CommandGetExportedKeys": _KEYS,
        "CommandGetImportedKeys": _KEYS,
        "CommandGetCrossReference": (),
        "CommandStatementQuery": _STATEMENT,
        "CommandStatementUpdate": _STATEMENT,
        "CommandPreparedStatementQuery": _HANDLE,
        "CommandPreparedStatementUpdate": _HANDLE,
        "TicketStatementQuery": ("bytes statement_handle 1",),
        "ActionCreatePreparedStatementRequest": _STATEMENT,
        "ActionCreatePreparedStatementResult": (
            "bytes prepared_statement_handle 1", "bytes dataset_schema 2", "bytes parameter_schema 3",
        ),
        "ActionCancelQueryRequest": ("bytes info 1",),
        "ActionCancelQueryResult": ("int32 result 1",),
        "DoPutPreparedStatementResult": ("optional bytes prepared_statement_handle 1",),
    },
}  # fmt: skip


def _made() -> dict[str, type[Message]]:
    pool = descriptor_pool.DescriptorPool()
    for package, messages in _MESSAGES.items():
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        for name, fields in messages.items():
            message = file.message_type.add(name=name)
            for line in fields:
                _add(message, line, package)
        pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for package, messages in _MESSAGES.items()
        for name in messages
    }


def _add(message: descriptor_pb2.DescriptorProto, line: str, package: str) -> None:
    *label, type_, name, number = line.split()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if label == ["repeated"] else field.LABEL_OPTIONAL
    if type_ in _TYPES:
        field.type = _TYPES[type_]
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{package}.{type_}"
    if label == ["optional"]:  # known to be there or not, as proto3 writes it down
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")


_CLASSES = _made()


def make(kind: str, **fields: Any) -> Any:
    """A message of this kind."""
    return _CLASSES[kind](**fields)


def read(kind: str, data: bytes) -> Any:
    """The same from the wire; UsageError for what is none."""
    made = _CLASSES[kind]()
    try:
        made.ParseFromString(data)
    except DecodeError as error:
        raise _malformed(f"it is no {kind}") from error
    return made


def wrapped(kind: str, **fields: Any) -> bytes:
    """A message of Flight SQL, as it stands in commands, tickets and results."""
    packed = any_pb2.Any(
        type_url=f"type.googleapis.com/{_SQL}.{kind}", value=make(kind, **fields).SerializeToString()
    )
    return bytes(packed.SerializeToString())


def unwrapped(data: bytes) -> tuple[str, Any]:
    """Kind and message of what was wrapped; UsageError for what is none, or is not spoken here."""
    packed = any_pb2.Any()
    try:
        packed.ParseFromString(data)
    except DecodeError as error:
        raise _malformed("it is no command of Flight SQL") from error
    package, _, kind = packed.type_url.rpartition("/")[2].rpartition(".")
    if package != _SQL or kind not in _MESSAGES[_SQL]:
        raise _malformed(f"the SQL server has no {packed.type_url[:100]!r}")
    return kind, read(kind, packed.value)


def _malformed(why: str) -> UsageError:
    return UsageError("the request was refused", why, "ask with a driver of Flight SQL")
