"""Words and lines: how often each word was said, and errors routed to a table of their own."""

from jobs.tables.gallery.words import error_lines, word_count
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (word_count.TABLE, error_lines.TABLE)
