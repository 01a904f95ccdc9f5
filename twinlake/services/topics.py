"""The step between broker, registry and lake: every topic exists, every schema is registered."""

from __future__ import annotations

from twinlake.services.broker_security import is_locked, supervisor_access
from twinlake.services.part import Context, Part
from twinlake.services.rights import apply_acls
from twinlake.topics.kafka import Kafka
from twinlake.topics.registering import register
from twinlake.topics.topic import load_topic, topic_names


def parts() -> tuple[Part, ...]:
    return (
        Part(name="topics", service="topics", needs=("broker", "registry"), prepare=prepare, probe=_probe),
    )


def prepare(context: Context) -> None:
    """Makes what is lacking; twice changes nothing."""
    # here, because every command of `twinlake` knows this list of parts, and the client takes half a second
    from twinlake.topics.registry import Registry

    kafka = Kafka(supervisor_access(context))
    registry = Registry(context.services.registry())
    sources = context.settings.sources
    if is_locked(context.settings):
        apply_acls(context, topic_names(*sources))
    for name in topic_names(*sources):
        topic = load_topic(name, *sources)
        register(registry, topic)
        if kafka.topic(topic.name) is None:  # where it is given, we may have no right to make one
            kafka.create(topic.name)


def _probe(context: Context) -> str:
    return ", ".join(topic_names(*context.settings.sources))
