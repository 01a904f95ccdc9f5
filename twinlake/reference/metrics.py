"""docs/metrics.md from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twinlake.metrics.catalogue import BOTH, CONSOLE, EVERY, LAKE, METRICS, SQL, Metric
from twinlake.reference import row

HEAD = """# Metrics

Made from the code by `python -m twinlake.reference`; a test compares.

Lake server, SQL server and console each serve `/metrics` in Prometheus' form, at an address of its own:
`lake_metrics_url`, `sql_metrics_url` and `console_metrics_url` of `services.json`. All ask for `metrics_user`
and `metrics_password` of the same file, a login that opens nothing else. `twinlake up` prints the addresses,
`twinlake status` shows them. In `twinlake.toml` `[metrics]` says where they listen, or switches them off, and
`[ports]` fixes their ports ([settings](settings.md)). To see one:

```
curl --user "metrics:PASSWORD" LAKE_METRICS_URL    # both from services.json
```

```yaml
# prometheus.yml; /etc/prometheus/twinlake holds metrics_password alone
scrape_configs:
  - job_name: twinlake
    scrape_interval: 15s
    basic_auth: {username: metrics, password_file: /etc/prometheus/twinlake}
    static_configs:
      # [ports] lake_metrics, sql_metrics and console_metrics
      - targets: ["127.0.0.1:18093", "127.0.0.1:18094", "127.0.0.1:18095"]
```

**OpenTelemetry.** With `otlp_url` in `[metrics]` the same metrics are sent by OTLP over HTTP, too, every
`otlp_seconds`: same names and labels, units as UCUM writes them (`s`, `By`, `{records}`), sums and histograms
over the whole time since the process started, `service.name` `twinlake-lake`, `twinlake-sql` or
`twinlake-console`. It takes `pip install 'twinlake[otel]'`, which `twinlake up` says where it is missing.
`otlp_headers_file` holds the headers that the receiver asks for in one line, as `Authorization=Bearer ...`,
several with commas between them. The SQL server, which runs as a user of its own, has to be able to read that
file (`chgrp nogroup`, `chmod 640`), else it sends nothing and says so in its log: give a token that can write
metrics and nothing else. A receiver that is away or takes nothing disturbs nothing; the log says it once, and
once that it is over.

A scrape is answered from memory: it runs no Spark and reads no file of the lake, so it costs milliseconds and
is answered while a rebuild runs, while the lake server starts, and while the broker is away. Counters and
histograms begin with 0 when their process starts. Series of a version that is retired end; a time of
a certificate or a witness is there from the first one on.

[`infra/prometheus/twinlake.rules.yml`](../infra/prometheus/twinlake.rules.yml) has alert rules over them,
[`infra/grafana/twinlake.json`](../infra/grafana/twinlake.json) a dashboard to import. The service
[`alarms`](alarms.md) needs neither.

Not in it: values of records, statements, paths, users, secrets; anything by partition; what Kafka, the
registry and Airflow measure themselves; executors on a cluster. Of a process that does not answer,
Prometheus' own `up` is 0.
"""
PLACES = (
    ("Lake server", (LAKE,)),
    ("SQL server", (SQL,)),
    ("Lake server and SQL server", BOTH),
    ("Console", (CONSOLE,)),
    ("All three", EVERY),
)


def rows(metrics: Iterable[Metric]) -> Iterator[str]:
    yield "| metric | type | labels | unit | meaning |"
    yield "|---|---|---|---|---|"
    for one in metrics:
        labels = ", ".join(f"`{label}`" for label in one.labels) or "-"
        yield row(f"`{one.name}`", one.type, labels, one.unit, one.meaning)


def text() -> str:
    lines = [HEAD]
    for title, processes in PLACES:
        lines += [f"## {title}", *rows(one for one in METRICS if one.of == processes), ""]
    return "\n".join(lines)
