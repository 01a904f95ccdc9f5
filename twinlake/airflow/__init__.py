"""The DAGs, as makers that the files of a project's `dags/` call, and how their tasks ask the lake server."""
