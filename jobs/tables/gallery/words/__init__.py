"""Words and lines: how often each word was said, and errors routed to a table of their own."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.words import error_lines, word_count

TABLES: tuple[Kind, ...] = (word_count.TABLE, error_lines.TABLE)
