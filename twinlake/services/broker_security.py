"""The security of the embedded broker: which listener lets whom in. What each may do then is in `rights.py`.

With `security = "SASL_SSL"` and no external Kafka, the broker speaks TLS only. Producer, ingest and
changelog are users with passwords (SCRAM) and no more rights than they need; the supervisor has a certificate
and a listener of its own, and is, beside the broker itself, the only one who may do everything.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from twinlake.config.login import ROLES, SASL_SSL, SCRAM, SSL, Login
from twinlake.config.settings import Settings
from twinlake.services.certificates import BROKER, SUPERVISOR, Certificates
from twinlake.services.part import Context
from twinlake.services.ports import HOST


def is_locked(settings: Settings) -> bool:
    """Whether a broker is embedded, and locked."""
    kafka = settings.values.kafka
    return not kafka.is_external and kafka.security == SASL_SSL


def certificates(context: Context) -> Certificates:
    return Certificates(context.folders.of("kafka") / "tls")


def shown(context: Context) -> dict[str, dict[str, str]]:
    """What each role shows of itself, for services.json; passwords that exist are kept, missing ones made."""
    if not is_locked(context.settings):
        kafka = context.settings.values.kafka
        return {role: login for role in ROLES if (login := kafka.login(role).shown())}
    kept, authority = context.services.kafka_access, str(certificates(context).authority)
    return {
        role: {
            "security": SASL_SSL, "mechanism": SCRAM, "username": role, "ca_file": authority,
            "password": _kept(kept.get(role, {}), role) or secrets.token_urlsafe(24),
        }
        for role in ROLES
    }  # fmt: skip


def supervisor_access(context: Context) -> Login:
    """How the supervisor gets in, to look whether the broker answers and to make topics."""
    if not is_locked(context.settings):
        return context.services.kafka("ingest")
    held = certificates(context)
    return Login(
        bootstrap_servers=f"{HOST}:{context.ports['broker_admin']}", security=SSL,
        ca_file=held.authority, certificate_file=held.certificate(SUPERVISOR), key_file=held.key(SUPERVISOR),
    )  # fmt: skip


def listeners(context: Context) -> str:
    """The lines of the broker's settings that say which listener lets whom in."""
    ports = context.ports
    if not is_locked(context.settings):
        return f"""listeners=PLAINTEXT://{HOST}:{ports["broker"]},CONTROLLER://{HOST}:{ports["controller"]}
advertised.listeners=PLAINTEXT://{HOST}:{ports["broker"]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
"""
    listeners = f"CLIENTS://{HOST}:{ports['broker']},BROKERS://{HOST}:{ports['broker_admin']}"
    held = certificates(context)
    return f"""listeners={listeners},CONTROLLER://{HOST}:{ports["controller"]}
advertised.listeners={listeners}
listener.security.protocol.map=CLIENTS:SASL_SSL,BROKERS:SSL,CONTROLLER:SSL
inter.broker.listener.name=BROKERS
sasl.enabled.mechanisms={SCRAM}
listener.name.clients.{SCRAM.lower()}.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={held.pair(BROKER)}
ssl.truststore.type=PEM
ssl.truststore.location={held.authority}
listener.name.brokers.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:CN={BROKER};User:CN={SUPERVISOR}
"""


def _kept(login: Mapping[str, str], role: str) -> str:
    """The password of a user of this broker, not of an external Kafka that was used before."""
    is_ours = login.get("username") == role and login.get("mechanism", SCRAM) == SCRAM
    return login.get("password", "") if is_ours else ""
