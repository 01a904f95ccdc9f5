"""What the SQL server and its clients agree on beside the rows."""

from __future__ import annotations

HEADER = "x-twinlake-query"
"""Every request has it: a page of somebody else's that a browser shows cannot send it."""
ARROW = "application/vnd.apache.arrow.stream"
"""Who accepts this gets the rows as an Arrow stream, with what is known of them in its schema's metadata."""
METADATA = "twinlake"
"""The key of what is known of the rows, as JSON, in that metadata."""
SLOW_S = 30.0
"""A client that takes no piece of its answer for so long is cut off."""
EXPORT_SLOW_S = 300.0
"""The same for an answer of /export: it waits in files, for one who works on each batch."""
