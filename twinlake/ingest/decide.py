"""What the driver decides about one micro-batch: every record's code, and what the commit says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from twinlake.ingest import decode_avro, decoding, first_pass
from twinlake.topics import verdict

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Code:
    """What one code stands for."""

    verdict: str
    reasons: tuple[str, ...] = ()
    late: bool = False
    decodable: bool = True

    @property
    def unreadable(self) -> bool:
        """Whether it waits for a schema that can read it."""
        return is_unreadable(self.reasons)


VALID = Code(verdict=verdict.VALID)
VALID_LATE = Code(verdict=verdict.VALID, late=True)
TOO_LATE = Code(verdict=verdict.TOO_LATE, reasons=(verdict.DISCARDED,))
DUPLICATE = Code(verdict=verdict.DUPLICATE, reasons=(verdict.ALREADY_SEEN,))
SKIP = 0  # the code of an offset that is in the log already, or that is none (a transaction's marker)
FIXED = (VALID, VALID_LATE, TOO_LATE, DUPLICATE)  # codes 1 to 4; one for every list of reasons follows
_UNDECODABLE = frozenset(verdict.UNDECODABLE)


@dataclass(frozen=True, kw_only=True)
class Span:
    """One partition's codes: `width` bytes, big-endian, for every offset from `start` on."""

    start: int
    codes: bytes


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Everything decided about a micro-batch. Times in microseconds."""

    records: int
    skips: bool  # whether some of the records read are in the log already
    codes: tuple[Code, ...]  # code number i + 1
    width: int
    spans: dict[int, Span]
    ends: dict[int, int]  # the next offset to read
    seen: dict[int, int]  # newest Kafka timestamp per partition
    event_times: dict[int, int]  # newest event time per partition, of the records that count for it
    counted: dict[int, int]  # newest Kafka timestamp of these: valid, with a time that is not in the future
    counts: dict[str, int]
    schema_ids: frozenset[int]  # of decodable records
    unreadable: dict[int, int]  # by schema id, how many records the topic's newest schema cannot read
    order: np.ndarray  # which of the records read are new, in log order
    row_codes: np.ndarray  # their codes
    high: np.ndarray  # ids of the records that became valid, for the index
    low: np.ndarray
    times: np.ndarray


class Index(Protocol):
    """Who was seen when."""

    def judge(self, high: np.ndarray, low: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Whether each record, in log order, repeats an id; remembers none of them."""


def decide(found: pa.Table, ends: dict[int, int], index: Index, reached: dict[int, int]) -> Decision | None:
    """Decides in log order (partition, offset); None where every record is in the log already.

    `found` has the columns of `first_pass.selections`; `ends` are the log's own end offsets. `reached` are
    the offsets that reading has come to: what is between the last records and them is markers of
    transactions, and aborted records.
    """
    partition, offset = _numbers(found, "partition"), _numbers(found, "offset")
    log_end = np.zeros(int(partition.max(initial=0)) + 1, dtype=np.int64)
    for number, end in ends.items():
        if number < len(log_end):
            log_end[number] = end
    fresh = offset >= log_end[partition]
    if not fresh.any():
        return None
    order = np.flatnonzero(fresh)
    order = order[np.lexsort((offset[order], partition[order]))]

    partition, offset = partition[order], offset[order]
    micros, event_micros = _numbers(found, "micros")[order], _numbers(found, "event_micros")[order]
    flags, schema_id = _numbers(found, "flags")[order], _numbers(found, "schema_id")[order]
    high, low = _numbers(found, "high")[order], _numbers(found, "low")[order]
    texts = found.column("reasons").combine_chunks().dictionary_encode()
    which = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)[order]

    late = (flags & first_pass.LATE) != 0
    codes = np.where(late, 2, 1).astype(np.int64)
    codes[(flags & first_pass.DISCARD) != 0] = 3
    codes[which >= 0] = len(FIXED) + 1 + which[which >= 0]
    table = [*FIXED, *(_invalid(text) for text in texts.dictionary.to_pylist())]

    asked = np.flatnonzero((codes <= 2) & ((flags & first_pass.NO_ID) == 0))
    repeated = index.judge(high[asked], low[asked], micros[asked])
    codes[asked[repeated]] = 4
    added = asked[~repeated]

    valid = codes <= 2
    timed = valid & ((flags & first_pass.NO_TIME) == 0)
    ignored = np.array([False] + [code.verdict == verdict.IGNORED for code in table])[codes]
    decodable = np.array([True] + [code.decodable for code in table])[codes]
    unreadable = np.array([False] + [code.unreadable for code in table])[codes]
    width = 1 if len(table) < 256 else 2 if len(table) < 65_536 else 3
    spans = {}
    new_ends, seen, event_times, counted = {}, {}, {}, {}
    for number in np.unique(partition).tolist():
        here = partition == number
        spans[number] = _span(offset[here], codes[here], width)
        new_ends[number] = int(offset[here][-1]) + 1
        seen[number] = int(micros[here].max())
        past = here & timed & (event_micros <= micros)
        if past.any():
            event_times[number] = int(event_micros[past].max())
            counted[number] = int(micros[past].max())
    return Decision(
        records=len(order),
        skips=len(order) < len(fresh),
        codes=tuple(table),
        width=width,
        spans=spans,
        ends={**new_ends, **reached},
        seen=seen,
        event_times=event_times,
        counted=counted,
        counts={
            verdict.VALID: int(np.count_nonzero(valid)),
            verdict.INVALID: int(np.count_nonzero((codes > len(FIXED)) & ~ignored)),
            verdict.DUPLICATE: int(np.count_nonzero(codes == 4)),
            verdict.TOO_LATE: int(np.count_nonzero(codes == 3)),
            **({verdict.IGNORED: int(np.count_nonzero(ignored))} if ignored.any() else {}),
            verdict.LATE: int(np.count_nonzero(codes == 2)),
        },
        order=order,
        row_codes=codes,
        schema_ids=frozenset(np.unique(schema_id[decodable]).tolist()),
        unreadable=_counts(schema_id[unreadable]),
        high=high[added],
        low=low[added],
        times=micros[added],
    )


def is_unreadable(reasons: Sequence[str] | None) -> bool:
    """Whether a record with these reasons waits for a schema that can read it."""
    code = reasons[0].partition(":")[0] if reasons else None
    return code == verdict.UNREADABLE_BY_SCHEMA


def _counts(numbers: np.ndarray) -> dict[int, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _numbers(found: pa.Table, name: str) -> np.ndarray:
    numbers: np.ndarray = found.column(name).to_numpy().astype(np.int64, copy=False)
    return numbers


def _invalid(text: str) -> Code:
    if text == decoding.IGNORED:
        return Code(verdict=verdict.IGNORED, reasons=(verdict.NULL_VALUE,), decodable=False)
    if text == decode_avro.NO_SCHEMA_YET:  # the registry has been asked, and has none either
        text = verdict.UNKNOWN_SCHEMA
    reasons = tuple(text.split(decode_avro.SEPARATOR))
    decodable = reasons[0].split(":")[0] not in _UNDECODABLE
    return Code(verdict=verdict.INVALID, reasons=reasons, decodable=decodable)


def _span(offsets: np.ndarray, codes: np.ndarray, width: int) -> Span:
    start = int(offsets[0])
    dense = np.full(int(offsets[-1]) - start + 1, SKIP, dtype=np.int64)
    dense[offsets - start] = codes
    big_endian = dense.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 4 - width :]
    return Span(start=start, codes=big_endian.tobytes())
