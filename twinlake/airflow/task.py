"""The decorator `lake_task`: an Airflow task that asks the lake server for jobs, and waits for them deferred.

Its function runs again after each job that it has waited for: what has ended is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk import BaseOperatorLink, get_current_context
from airflow.sdk.bases.decorator import task_decorator_factory
from airflow.sdk.exceptions import AirflowFailException, TaskDeferralError

from twinlake.airflow.connection import lake
from twinlake.base.errors import TwinlakeError

event_of_this_run: ContextVar[dict[str, Any] | None] = ContextVar("event_of_this_run", default=None)
"""What the trigger said last: a job that has ended, or why none has."""

UNKNOWN_TRIGGER = (
    "Airflow's triggerer could not wait for the job: see the lines above. Where it found no module named "
    "twinlake, put the folder of these DAGs on the PYTHONPATH of the triggerer, as docs/airflow.md "
    "shows, and restart it"
)


class _MessageAlone(Exception):
    """Its message says it all: of the frames in Airflow's code that it comes through, the log shows one."""

    def __str__(self) -> str:
        if self.__traceback__ is not None:  # structlog asks for the message first, and then walks the frames
            self.__traceback__.tb_next = None
        return super().__str__()


class ShownFailure(_MessageAlone, AirflowFailException):
    """What the same request meets again: the task fails at once."""


class ShownError(_MessageAlone, RuntimeError):
    """What may go well next time: Airflow tries the task again."""


class ConsoleLink(BaseOperatorLink):
    """A job, or the plan that waits; nothing where nobody has said where the console is."""

    name = "Twinlake"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return str(getattr(operator, "console_link", None) or "")


class ReportLink(BaseOperatorLink):
    """The report of the plan, for browsers that can reach it."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return str(getattr(operator, "report_link", None) or "")


def show_in_console(path: str, **asked: str) -> None:
    """Where the button of this task leads from now on. A task does not fail because there is no button."""
    try:
        link = lake().console_link(path, **asked)
    except TwinlakeError:
        return
    get_current_context()["ti"].task.console_link = link


class LakeTask(_PythonDecoratedOperator):
    """A function that may ask for jobs with `run_job`."""

    custom_operator_name = "@lake_task"
    operator_extra_links: tuple[BaseOperatorLink, ...] = (ConsoleLink(),)

    def resume(self, context: Any, event: dict[str, Any]) -> Any:
        """The job has ended for which the task was deferred."""
        event_of_this_run.set(event)
        return self.execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralError as error:
            raise ShownFailure(UNKNOWN_TRIGGER) from error


class ReportedTask(LakeTask):
    """A task whose function may set `report_link` of its operator."""

    operator_extra_links = (ConsoleLink(), ReportLink())


def lake_task(
    function: Callable[..., Any] | None = None, operator: type[LakeTask] = LakeTask, **options: Any
) -> Any:
    """`@lake_task` or `@lake_task(retries=0)`."""
    return task_decorator_factory(
        python_callable=function, decorated_operator_class=operator, multiple_outputs=False, **options
    )
