"""A music site's visitors: clicks with the profile as it was and the searches before, sessions, top songs."""

from jobs.tables.gallery.clicks import (
    clicks_after_searches,
    clicks_with_profile,
    kept_clicks,
    kept_profiles,
    kept_searches,
    song_minutes,
    songs_lately,
    top_songs,
    user_sessions,
)
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (
    kept_clicks.TABLE,
    kept_profiles.TABLE,
    kept_searches.TABLE,
    clicks_with_profile.TABLE,
    clicks_after_searches.TABLE,
    user_sessions.TABLE,
    song_minutes.TABLE,
    songs_lately.TABLE,
    top_songs.TABLE,
)
