"""Certificates: an authority of this home's own, and what it has signed for the broker and the supervisor.

The authority's key is never written down: what it signed is all that there will ever be.
"""

from __future__ import annotations

import ipaddress
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from twinlake.base.files import SECRET, replace_file
from twinlake.base.times import utc_now

BROKER, SUPERVISOR = "twinlake-broker", "twinlake-supervisor"
"""Common names; Kafka knows their holders as `User:CN=...`."""
VALID = timedelta(days=3650)
RENEWED_BEFORE = timedelta(days=90)
HOSTS, ADDRESSES = ("localhost",), ("127.0.0.1",)


@dataclass(frozen=True)
class Certificates:
    """The files of one home, all in one folder that only its owner can enter."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Whom to trust."""
        return self.folder / "ca.pem"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def pair(self, name: str) -> Path:
        """Certificate and key in one file, as Kafka's broker reads them."""
        return self.folder / f"{name}.pair.pem"

    def make(self) -> None:
        """Makes all of it again where something is missing, or ends within three months."""
        if self._last():
            return
        from cryptography import x509  # here: every command knows the parts, and only a start needs this
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        pem, now = serialization.Encoding.PEM, utc_now()

        def signed(
            name: str, key: ec.EllipticCurvePrivateKey, by: str, with_key: ec.EllipticCurvePrivateKey
        ) -> bytes:
            subject, issuer = (
                x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in (name, by)
            )
            made = (
                x509.CertificateBuilder(subject_name=subject, issuer_name=issuer)
                .public_key(key.public_key())
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - timedelta(hours=1))  # clocks are set
                .not_valid_after(now + VALID)
                .add_extension(x509.BasicConstraints(ca=name == by, path_length=None), critical=True)
            )
            for extension in (
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
                x509.AuthorityKeyIdentifier.from_issuer_public_key(with_key.public_key()),
            ):
                made = made.add_extension(extension, critical=False)
            if name != by:
                hosts = [
                    *map(x509.DNSName, HOSTS),
                    *(x509.IPAddress(ipaddress.ip_address(one)) for one in ADDRESSES),
                ]
                uses = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
                made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
                made = made.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            return made.sign(with_key, hashes.SHA256()).public_bytes(pem)

        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        authority, own = f"twinlake {now:%Y-%m-%d %H:%M:%S}", ec.generate_private_key(ec.SECP256R1())
        for name in (BROKER, SUPERVISOR):
            key = ec.generate_private_key(ec.SECP256R1())
            held = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            certificate = signed(name, key, authority, own)
            replace_file(self.key(name), held, SECRET)
            replace_file(self.certificate(name), certificate, SECRET)
            replace_file(self.pair(name), held + certificate, SECRET)
        replace_file(self.authority, signed(authority, own, authority, own))  # the last: now it is whole

    def _last(self) -> bool:
        """Whether everything is there, holds already (a clock may have been set back), and long enough."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        names, now = (BROKER, SUPERVISOR), utc_now()
        try:
            held = [
                x509.load_pem_x509_certificate(file.read_bytes())
                for file in (self.authority, *map(self.certificate, names))
            ]
            for name in names:
                key = self.key(name).read_bytes()
                load_pem_private_key(key, None)
                if self.pair(name).read_bytes() != key + self.certificate(name).read_bytes():
                    return False
        except (OSError, ValueError):
            return False
        return all(one.not_valid_before_utc <= now < one.not_valid_after_utc - RENEWED_BEFORE for one in held)
