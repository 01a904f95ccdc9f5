"""The list of parts fits together: its order, its names, its ports."""

from twinlake.services.all import all_parts, service_names
from twinlake.services.ports import NAMES


def test_each_part_comes_after_what_it_needs_and_lets_go_first() -> None:
    known: set[str] = set()
    for part in all_parts():
        assert {*part.needs, *part.after} <= known, part.name
        known.add(part.name)

    assert len(known) == len(all_parts())


def test_every_port_belongs_to_one_part() -> None:
    owned = [port for part in all_parts() for port in part.ports]

    assert sorted(owned) == sorted(NAMES)


def test_the_parts_of_airflow_are_one_service() -> None:
    names = ("broker", "registry", "topics", "lake", "sql", "airflow", "console", "alarms")
    assert service_names(all_parts()) == names
