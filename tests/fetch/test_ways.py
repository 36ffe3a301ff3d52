"""Ways to a server: TLS, proxies, kept connections, conditions, cookies; over real sockets on loopback."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from barkspider.core.load import load_settings
from barkspider.fetch import Fetcher, Response, Validators
from barkspider.lab.synthweb.certificates import Authority

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on 127.0.0.1; what it says is up to `serve`."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            await close(writer)

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


def answering(answer: bytes, heard: list[bytes] | None = None) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if heard is not None:
            heard.append(request)
        writer.write(answer)
        await writer.drain()

    return serve


def fetcher(port: int, **settings: object) -> Fetcher:
    opened = {
        "network.allow": ["127.0.0.0/8"],
        "network.ports": [f"127.0.0.0/8:80={port}", f"127.0.0.0/8:443={port}"],
        "fetch.timeout": "5s",
        "fetch.connect_timeout": "2s",
    }
    return Fetcher(load_settings(overrides=opened | settings))


async def relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        await close(sink)


async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, port: int) -> None:
    there, back = await asyncio.open_connection(address, port)
    await asyncio.gather(relay(reader, back), relay(there, writer))


async def connect_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, authority, _ = head.split(b"\r\n")[0].split()
    assert method == b"CONNECT"
    if b"Proxy-Authorization: Basic bWU6c2VjcmV0" not in head:
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    address, port = authority.decode().split(":")
    await join(reader, writer, address, int(port))


async def socks_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    version, count = await reader.readexactly(2)
    await reader.readexactly(count)
    writer.write(b"\x05\x00")
    version, command, _, kind = await reader.readexactly(4)
    assert (version, command, kind) == (5, 1, 1)
    address = str(ipaddress.IPv4Address(await reader.readexactly(4)))
    port = int.from_bytes(await reader.readexactly(2), "big")
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    await join(reader, writer, address, port)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ssl.SSLContext, Path]]:
    trusted = tmp_path_factory.mktemp("tls") / "authority.pem"
    authority = Authority()
    trusted.write_bytes(authority.pem)
    yield authority.context("a.example"), trusted
    authority.close()


@pytest.mark.parametrize(
    ("proxy", "scheme"),
    [
        ("http://me:secret@127.0.0.1", "http"),
        ("http://me:secret@localhost", "https"),
        ("socks5://127.0.0.1", "http"),
        ("socks5://127.0.0.1", "https"),
    ],
)
def test_a_proxy_is_the_way_to_everything(
    proxy: str, scheme: str, certificates: tuple[ssl.SSLContext, Path]
) -> None:
    context, authority = certificates

    async def run() -> tuple[Response, int]:
        tunnels = 0

        async def proxying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal tunnels
            tunnels += 1
            await (connect_proxy if proxy.startswith("http") else socks_proxy)(reader, writer)

        tls = context if scheme == "https" else None
        async with listening(answering(PAGE), tls) as port, listening(proxying) as way:
            settings = {"network.proxy": f"{proxy}:{way}", "fetch.tls_authority": str(authority)}
            async with aclosing(fetcher(port, **settings)) as fetching:
                return await fetching.fetch(f"{scheme}://a.example/", "127.0.0.1"), tunnels

    response, tunnels = asyncio.run(run())
    assert (response.exchange.outcome, response.body, tunnels) == ("ok", b"page", 1)
    assert b"secret" not in response.request


@pytest.mark.parametrize(
    ("proxy", "detail"),
    [
        ("http://me:wrong@127.0.0.1:{}", "407"),
        ("socks5://127.0.0.1:{}", "no answer in time"),
        ("http://127.0.0.1:1", ""),
    ],
)
def test_a_proxy_that_refuses_is_a_failure_with_a_name(proxy: str, detail: str) -> None:
    async def run() -> Response:
        async with listening(connect_proxy) as way:
            settings = {"network.proxy": proxy.format(way), "fetch.connect_timeout": "200ms"}
            async with aclosing(fetcher(1, **settings)) as fetching:
                return await fetching.fetch("http://a.example/", "127.0.0.1")

    exchange = asyncio.run(run()).exchange
    assert exchange.failure in ("proxy_error", "connect_failed")
    assert detail in exchange.detail


@pytest.mark.parametrize(
    ("host", "verify", "outcome"),
    [
        ("a.example", True, "ok"),
        ("b.example", True, "tls_certificate"),
        ("b.example", False, "ok"),
    ],
)
def test_a_certificate_must_be_for_the_name(
    host: str, verify: bool, outcome: str, certificates: tuple[ssl.SSLContext, Path]
) -> None:
    context, authority = certificates

    async def run() -> Response:
        settings = {"fetch.tls_authority": str(authority), "fetch.verify_tls": verify}
        async with (
            listening(answering(PAGE), context) as port,
            aclosing(fetcher(port, **settings)) as fetching,
        ):
            return await fetching.fetch(f"https://{host}/", "127.0.0.1")

    exchange = asyncio.run(run()).exchange
    assert exchange.outcome == outcome
    if outcome == "ok":
        assert min(exchange.timing.connect, exchange.timing.tls, exchange.timing.first_byte) > 0
    else:
        assert "mismatch" in exchange.detail


def test_what_does_not_speak_tls_is_a_tls_error() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def run(script: Serve) -> str:
        async with listening(script) as port:
            short = {"fetch.connect_timeout": "200ms"}
            async with aclosing(fetcher(port, **short)) as fetching:
                return (await fetching.fetch("https://a.example/", "127.0.0.1")).exchange.outcome

    assert asyncio.run(run(serve)) == "tls_error"
    assert asyncio.run(run(silent)) == "timeout_tls"


def test_a_condition_is_sent_and_answered() -> None:
    heard: list[bytes] = []

    async def run() -> Response:
        answer = b'HTTP/1.1 304 Not Modified\r\nETag: "v2"\r\n\r\n'
        async with listening(answering(answer, heard)) as port, aclosing(fetcher(port)) as fetching:
            known = Validators('"v1"', "Thu, 01 Jan 1970 00:00:00 GMT")
            return await fetching.fetch("http://a.example/", "127.0.0.1", known)

    assert asyncio.run(run()).exchange.outcome == "not_modified"
    assert b'If-None-Match: "v1"\r\nIf-Modified-Since: Thu, 01 Jan 1970' in heard[0]


def test_a_validator_cannot_add_a_header() -> None:
    heard: list[bytes] = []

    async def run() -> None:
        async with listening(answering(PAGE, heard)) as port, aclosing(fetcher(port)) as fetching:
            await fetching.fetch("http://a.example/", "127.0.0.1", Validators('"v1"\r\nX: y', "\n"))

    asyncio.run(run())
    assert b"X: y" not in heard[0]
    assert b"If-" not in heard[0]


@pytest.mark.parametrize(
    ("contact", "email", "sent"),
    [
        ("me@example.org", "", b"\r\nFrom: me@example.org\r\n"),
        ("https://example.org/bot", "", None),
        ("https://example.org/bot", "bot@example.org", b"\r\nFrom: bot@example.org\r\n"),
    ],
)
def test_we_say_who_we_are(contact: str, email: str, sent: bytes | None) -> None:
    heard: list[bytes] = []

    async def run() -> None:
        async with listening(answering(PAGE, heard)) as port:
            identity = {"agent.contact": contact, "agent.email": email}
            async with aclosing(fetcher(port, **identity)) as fetching:
                await fetching.fetch("http://a.example/", "127.0.0.1")

    asyncio.run(run())
    assert f"(+{contact})".encode() in heard[0]
    assert (b"\r\nFrom:" in heard[0]) == (sent is not None)
    assert sent is None or sent in heard[0]


@pytest.mark.parametrize("enabled", [True, False])
def test_cookies_go_back_to_their_site_alone(enabled: bool) -> None:
    heard: list[bytes] = []
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7; Domain=a.example\r\nContent-Length: 0\r\n\r\n"

    async def run() -> None:
        async with listening(answering(answer, heard)) as port:
            chosen = {"cookies.enabled": enabled}
            async with aclosing(fetcher(port, **chosen)) as fetching:
                for host in ("www.a.example", "shop.a.example", "b.example"):
                    await fetching.fetch(f"http://{host}/", "127.0.0.1")

    asyncio.run(run())
    assert [b"Cookie: id=7" in request for request in heard] == [False, enabled, False]


def test_giving_up_leaves_no_connection_behind() -> None:
    async def run() -> bool:
        ended = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asking.cancel()
            await reader.read()
            ended.set()

        async with listening(silent) as port, aclosing(fetcher(port)) as fetching:
            asking = asyncio.create_task(fetching.fetch("http://a.example/", "127.0.0.1"))
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(ended.wait(), 5)
            return ended.is_set()

    assert asyncio.run(run())


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
@pytest.mark.parametrize(("times", "outcome"), [(3, "ok"), (10**6, "no_file_handles")])
def test_a_fetch_waits_for_a_file_handle(
    monkeypatch: pytest.MonkeyPatch, number: int, times: int, outcome: str
) -> None:
    from barkspider.fetch import connection
    from barkspider.fetch import fetcher as fetching_module

    left = times
    real = connection.socket.socket

    def refuse(*arguments: object, **named: object) -> socket.socket:
        nonlocal left
        if left and not named:
            left -= 1
            raise OSError(number, "none left")
        return real(*arguments, **named)  # type: ignore[arg-type]

    async def run() -> str:
        async with listening(answering(PAGE)) as port, aclosing(fetcher(port)) as fetching:
            monkeypatch.setattr(connection.socket, "socket", refuse)
            return (await fetching.fetch("http://a.example/", "127.0.0.1")).exchange.outcome

    monkeypatch.setattr(fetching_module, "_NO_FILES_PAUSE", 0.001)
    monkeypatch.setattr(fetching_module, "_NO_FILES_PATIENCE", 0.05)
    assert asyncio.run(run()) == outcome
    assert (times - left > 3) == (outcome != "ok")
