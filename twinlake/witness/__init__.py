"""The witness: a second engine, DuckDB, evaluates a definition from its documented meaning.

It knows a definition's JSON and files, imports `twinlake.base` alone, shares no code with `twinlake/kinds`.
What both engines do not surely answer alike is refused, before it runs (`Refused`) or by a guard in the SQL.
"""
