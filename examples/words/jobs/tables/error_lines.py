"""The log lines at level ERROR, whatever their message says."""

from twinlake import Events

TABLE = Events(
    name="error_lines",
    inputs=("log_lines",),
    where="level = 'ERROR'",
    columns={"event_id": "event_id", "service": "service", "message": "message", "logged_at": "logged_at"},
)
