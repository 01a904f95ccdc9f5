"""Expectations: the Great Expectations suite that a data contract stands for, run on a version's view."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinlake.base.as_json import to_json
from twinlake.releases.gate_checks import Check
from twinlake.topics.contract import Contract, Rule
from twinlake.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, EMPTY, MISSING, NOT_ALLOWED, TOO_LONG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_VALUES = 5
_one_at_a_time = threading.Lock()  # Great Expectations keeps its context in a global


def expectation_checks(contract: Contract, view: DataFrame) -> list[Check]:
    """One check per expectation of the contract's suite, run by Great Expectations on `view`."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read at import: nothing is sent anywhere
    import great_expectations as gx

    with _one_at_a_time:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        asset = context.data_sources.add_spark(name="lake", persist=False).add_dataframe_asset(
            name=contract.name
        )
        whole = asset.add_batch_definition_whole_dataframe("view")
        suite = gx.ExpectationSuite(name=contract.name, expectations=expectations(contract))
        if not suite.expectations:
            return []
        batch = whole.get_batch({"dataframe": view})
        # Counts alone take a third of the queries; which rows break one is asked where one is broken.
        found = batch.validate(suite, result_format="BOOLEAN_ONLY")
        if not found.success:
            found = batch.validate(suite)
    return [_checked(contract.name, one) for one in found.describe_dict()["expectations"]]


def expectations(contract: Contract) -> list[Any]:
    """The suite that a contract stands for: each rule, and that its keys are unique."""
    import great_expectations.expectations as gxe

    made: list[Any] = [_expectation(rule) for rule in contract.rules]
    if len(contract.keys) == 1:
        made.append(gxe.ExpectColumnValuesToBeUnique(column=contract.keys[0]))
    elif contract.keys:
        made.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(contract.keys)))
    return made


def _expectation(rule: Rule) -> Any:
    import great_expectations.expectations as gxe

    if rule.code == MISSING:
        return gxe.ExpectColumnValuesToNotBeNull(column=rule.column)
    if rule.code == EMPTY:
        return gxe.ExpectColumnValueLengthsToBeBetween(column=rule.column, min_value=1)
    if rule.code == TOO_LONG:
        return gxe.ExpectColumnValueLengthsToBeBetween(column=rule.column, max_value=rule.value)
    if rule.code == NOT_ALLOWED and isinstance(rule.value, tuple):
        return gxe.ExpectColumnValuesToBeInSet(column=rule.column, value_set=list(rule.value))
    if rule.value is not None and not isinstance(rule.value, tuple):
        number = int(rule.value) if rule.value == int(rule.value) else float(rule.value)
        if rule.code == BELOW_MINIMUM:
            return gxe.ExpectColumnValuesToBeBetween(column=rule.column, min_value=number)
        if rule.code == ABOVE_MAXIMUM:
            return gxe.ExpectColumnValuesToBeBetween(column=rule.column, max_value=number)
    raise ValueError(f"no expectation stands for {rule}")


def _checked(table: str, one: Mapping[str, Any]) -> Check:
    kind = one.get("expectation_type") or one.get("type") or "expectation"
    asked = {key: value for key, value in one["kwargs"].items() if key != "batch_id"}
    result = one.get("result") or {}
    words = " ".join(f"{key}={_short(value)}" for key, value in asked.items())
    detail, rows = f"{kind} {words}", tuple[str, ...]()
    if not one["success"]:
        found, rows = _found(result)
        detail += f": {found}"
    return Check(table=table, name="expectation", passed=bool(one["success"]), detail=detail, rows=rows)


def _found(result: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """How much breaks it, and values that do."""
    if "unexpected_count" in result:
        values = [*result.get("partial_unexpected_list", ())][:SHOWN_VALUES]
        found = f"{result['unexpected_count']} of {result.get('element_count')} rows break it"
        return found, (f"such as {_short(values)}",) if values else ()
    return "something else is found", (f"found {_short(result.get('observed_value'))}",)


def _short(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return str(to_json(value))
