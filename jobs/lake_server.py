"""The lake server of this project: runs the jobs: `spark-submit jobs/lake_server.py --home DIR --port N`."""

import sys

from twinlake.server.__main__ import main

sys.exit(main())
