"""A certificate authority for the web, and a certificate for each host when it is first asked for."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# A year on either side: a test machine's clock may be wrong, and nothing depends on these dates.
_YEAR = datetime.timedelta(days=365)


class Authority:
    """Signs certificates with a key that is made for one run and never leaves the process.

    `contexts` remembers the last thousand hosts; one more costs two milliseconds.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._host_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Synthetic web authority")])
        self._certificate = self._root()
        self._folder = tempfile.TemporaryDirectory(prefix="synthweb-")
        self.context = lru_cache(1_000)(self._context)

    @property
    def pem(self) -> bytes:
        """The authority's certificate, for clients to trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server_context(self) -> ssl.SSLContext:
        """A context for a listening socket; it takes the certificate of the host that the client names."""
        context = self._context("localhost")
        context.sni_callback = self._choose
        return context

    def close(self) -> None:
        """Removes the folder of temporary files."""
        self._folder.cleanup()

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:  # noqa: ARG002
        if name is None:
            return None
        try:
            connection.context = self.context(name.lower())
        except ValueError:  # not a name that a certificate can hold
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        return None

    def _root(self) -> x509.Certificate:
        return (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        issuer_key = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _YEAR)
            .not_valid_after(now + _YEAR)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
        )

    def _context(self, name: str) -> ssl.SSLContext:
        # A common name has at most 64 characters; clients look at the alternative names only.
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        certificate = (
            self._builder(subject, self._host_key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        key = self._host_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Certificates are loaded from files only.
        path = Path(self._folder.name) / "host.pem"
        path.write_bytes(key + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(path)
        path.unlink()
        return context


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
