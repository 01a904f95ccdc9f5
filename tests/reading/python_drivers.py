"""What Python's drivers see of a SQL server, as JSON; runs in their environment: `... PORT PASSWORD`."""

import json
import sys
import warnings

from pyhive import hive
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select
from sqlalchemy.exc import SAWarning


def of_pyhive(port: int, password: str) -> dict[str, object]:
    connection = hive.connect(
        "127.0.0.1", port, username="analyst", password=password, auth="CUSTOM", database="serve"
    )
    cursor = connection.cursor()
    cursor.execute("SELECT count(*), max(amount) FROM orders WHERE region = %(region)s", {"region": "r1"})
    counted = [[str(value) for value in row] for row in cursor.fetchall()]
    cursor.execute("SHOW SCHEMAS")
    schemas = [row[0] for row in cursor.fetchall()]
    cursor.execute("SHOW TABLES IN serve")
    tables = [row[1] for row in cursor.fetchall()]
    try:
        cursor.execute("DROP VIEW orders")
        refused = ""
    except hive.OperationalError as error:
        refused = str(error)
    connection.close()
    return {"counted": counted, "schemas": schemas, "tables": tables, "refused": refused}


def of_sqlalchemy(port: int, password: str) -> dict[str, object]:
    engine = create_engine(
        f"hive://analyst:{password}@127.0.0.1:{port}/serve?auth=CUSTOM",
        connect_args={"configuration": {"set:hiveconf:twinlake.listing": "hive"}},
    )
    inspector = inspect(engine)
    orders = Table("orders", MetaData(), schema="serve", autoload_with=engine)
    query = select(orders.c.region, func.count()).group_by(orders.c.region).order_by(orders.c.region)
    with engine.connect() as connection:
        counted = [list(row) for row in connection.execute(query)]
    return {
        "counted": counted,
        "schemas": inspector.get_schema_names(),
        "tables": inspector.get_table_names("serve"),
        "views": inspector.get_view_names("release_1"),
        "here": inspector.get_table_names(),
        "columns": {
            one["name"]: type(one["type"]).__name__
            for one in inspector.get_columns("sales_per_region", "serve")
        },
        "has": [inspector.has_table("orders", "serve")],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", SAWarning)
    place = (int(sys.argv[1]), sys.argv[2])
    print(json.dumps({"pyhive": of_pyhive(*place), "sqlalchemy": of_sqlalchemy(*place)}))
