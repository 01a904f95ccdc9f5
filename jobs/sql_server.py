"""The SQL server of this project, which readers ask: `spark-submit jobs/sql_server.py --home DIR ...`."""

import sys

from twinlake.reading.__main__ import main

sys.exit(main())
