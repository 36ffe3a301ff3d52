"""Our end of TLS, against another in memory."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from barkspider.fetch.tls import TlsSession
from barkspider.lab.synthweb.certificates import Authority

_BUFFER = memoryview(bytearray(1 << 16))


class Peer:
    """A server's end."""

    def __init__(self, authority: Authority, name: str) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = authority.context(name).wrap_bio(self.incoming, self.outgoing, server_side=True)

    def shake_hands(self) -> bool:
        """Whether the handshake is over."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    found = Authority()
    yield found
    found.close()


def both(authority: Authority, name: str = "a.example") -> tuple[TlsSession, Peer]:
    """Two ends after their handshake."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    ours, theirs = TlsSession(context, "a.example"), Peer(authority, name)
    secured = shaken = False
    for _ in range(10):
        secured = secured or ours.shake_hands()
        theirs.incoming.write(ours.outgoing())
        shaken = shaken or theirs.shake_hands()
        if theirs.outgoing.pending:
            ours.feed(memoryview(theirs.outgoing.read()))
        if secured and shaken:
            return ours, theirs
    raise AssertionError("no end of shaking hands")


@pytest.mark.parametrize("piece", [1, 7, 1 << 14])
def test_what_is_sealed_comes_out(authority: Authority, piece: int) -> None:
    ours, theirs = both(authority)
    assert ours.read(_BUFFER) is None
    ours.write(b"question")
    theirs.incoming.write(ours.outgoing())
    assert theirs.tls.read(100) == b"question"
    answer = bytes(range(256)) * 200  # four records
    theirs.tls.write(answer)
    found, sent = bytearray(), memoryview(theirs.outgoing.read())
    for place in range(0, len(sent), piece):
        ours.feed(sent[place : place + piece])
        while size := ours.read(_BUFFER):
            found += _BUFFER[:size]
    assert bytes(found) == answer
    assert ours.outgoing() == b""


def test_a_peer_closes_with_or_without_a_word(authority: Authority) -> None:
    for says in (True, False):
        ours, theirs = both(authority)
        theirs.tls.write(b"last")
        if says:
            with pytest.raises(ssl.SSLWantReadError):
                theirs.tls.unwrap()
        ours.feed(memoryview(theirs.outgoing.read()))
        ours.feed(memoryview(b""))
        assert (ours.read(_BUFFER), bytes(_BUFFER[:4]), ours.read(_BUFFER)) == (4, b"last", 0)


def test_another_name_is_refused(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        both(authority, "b.example")


def test_what_is_no_tls_is_refused(authority: Authority) -> None:
    ours = TlsSession(ssl.create_default_context(cadata=authority.pem.decode()), "a.example")
    assert not ours.shake_hands()
    ours.feed(memoryview(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(ssl.SSLError):
        ours.shake_hands()
