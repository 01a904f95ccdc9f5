"""A music site's visitors: clicks with the profile as it was and the searches before, sessions, top songs."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.clicks import song_minutes

TABLES: tuple[Kind, ...] = (song_minutes.TABLE,)
