"""Certificates with one fault each, chosen by the name that the client asks for."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


def server_context(folder: Path, authority: Path) -> ssl.SSLContext:
    """For a listening socket. The certificate of the authority that signs goes to the file `authority`."""
    signer, signer_name = ec.generate_private_key(ec.SECP256R1()), _name("Hostile authority")
    key = ec.generate_private_key(ec.SECP256R1())
    root = _certificate(signer_name, signer, signer_name, signer, authority=True)
    authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

    def context(host: str) -> ssl.SSLContext:
        subject = "another.example" if "another-name" in host else host
        name, by, by_key = _name(subject[:60]), signer_name, signer
        if "self-signed" in host:
            by, by_key = name, key
        found = _certificate(name, key, by, by_key, subject, expired="expired" in host)
        path = folder / "host.pem"
        path.write_bytes(pem + found.public_bytes(serialization.Encoding.PEM))
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(path)
        return made

    def choose(connection: ssl.SSLObject, host: str | None, _context: ssl.SSLContext) -> None:
        if host is not None:
            connection.context = context(host)

    listening = context("localhost")
    listening.sni_callback = choose
    return listening


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    host: str = "authority.example",
    expired: bool = False,
    authority: bool = False,
) -> x509.Certificate:
    end = datetime.datetime.now(datetime.UTC) + (-_DAY if expired else _DAY)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 3 * _DAY)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
