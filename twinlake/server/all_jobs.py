"""Every kind of job that the lake server takes."""

from __future__ import annotations

from twinlake.server import backups, batch_jobs, pause_jobs, release_jobs, reload_jobs

KINDS = {
    **batch_jobs.KINDS, **release_jobs.KINDS, **pause_jobs.KINDS, **reload_jobs.KINDS, **backups.KINDS,
}  # fmt: skip
