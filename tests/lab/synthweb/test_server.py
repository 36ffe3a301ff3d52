"""HTTP and HTTPS over real sockets on several loopback addresses."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import socket
import ssl
from pathlib import Path

import brotli
import pytest

from barkspider.core.errors import UsageError
from barkspider.lab.synthweb import LoggedRequest, RunningWeb, Server, Web, WebSpec, read_log
from barkspider.lab.synthweb.hazards import server_address
from barkspider.lab.synthweb.http import Connection, Service
from barkspider.lab.synthweb.server import _bind_all

from .client import get


def _raw(running: RunningWeb, data: bytes, address: str | None = None) -> bytes:
    """What comes back for some bytes, until the server closes."""
    with socket.create_connection((address or server_address(0), running.http_port), timeout=5) as client:
        client.sendall(data)
        received = b""
        while chunk := client.recv(65_536):
            received += chunk
        return received


def _http_pages(web: Web, count: int) -> list[str]:
    urls = (web.url(page) for page in range(0, web.spec.pages, 37))
    return [url for url in urls if url.startswith("http:")][:count]


def test_pages_on_several_addresses(running: RunningWeb) -> None:
    urls = _http_pages(running.web, 40)
    assert len({running.web.server(url.split("/")[2]) for url in urls}) > 5
    for url in urls:
        status, headers, body = get(running, url)
        truth = running.web.page(url)
        assert (status, body) == (200, truth.body)
        assert headers["content-type"] == truth.content_type
        assert "date" in headers


def test_missing_pages_and_hosts(running: RunningWeb) -> None:
    seed = _http_pages(running.web, 1)[0]
    assert get(running, seed.rsplit("/", 1)[0] + "/no-such-page.html")[0] == 404
    assert b" 404 " in _raw(running, b"GET / HTTP/1.1\r\nHost: nowhere.com\r\nConnection: close\r\n\r\n")


def test_a_page_whose_version_the_client_has_is_not_sent_again(running: RunningWeb) -> None:
    first, second = _http_pages(running.web, 2)
    tags = {url: get(running, url)[1]["etag"] for url in (first, second)}
    assert len(set(tags.values())) == 2
    status, headers, body = get(running, first, If_None_Match=f'"other", {tags[first]}')
    assert (status, headers["etag"], body) == (304, tags[first], b"")
    for other in (tags[second], get(running, first, Accept_Encoding="gzip")[1]["etag"]):
        assert get(running, first, If_None_Match=other)[0] == 200


def test_keep_alive_close_and_pipelining(running: RunningWeb) -> None:
    url = _http_pages(running.web, 3)[2]
    host, path = url.removeprefix("http://").split("/", 1)
    address = running.web.server(host)
    assert address
    connection = http.client.HTTPConnection(address, running.http_port, timeout=5)
    for _ in range(3):
        connection.request("GET", "/" + path, headers={"Host": host})
        assert connection.getresponse().read() == running.web.page(url).body
    connection.close()
    one = f"GET /{path} HTTP/1.1\r\nhOsT:{host}:80\r\n"
    answers = _raw(running, f"{one}\r\n{one}\r\n{one}Connection: close\r\n\r\n".encode(), address)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert answers.endswith(running.web.page(url).body)
    assert _raw(running, f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode(), address).startswith(
        b"HTTP/1.1 200"
    )
    head = _raw(running, f"{one}Connection: close\r\n\r\n".replace("GET", "HEAD").encode(), address)
    assert head.endswith(b"\r\n\r\n")
    assert f"Content-Length: {len(running.web.page(url).body)}\r\n".encode() in head


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"\0\xff\xfe\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"GET / HTTP/1.1\r\nHost: " + b"x" * 70_000, 431),
    ],
)
def test_bad_requests_are_refused(running: RunningWeb, request_text: bytes, status: int) -> None:
    assert _raw(running, request_text).startswith(f"HTTP/1.1 {status} ".encode())


def test_gzip_when_asked_for(running: RunningWeb) -> None:
    for url in [*_http_pages(running.web, 3), f"http://www.{running.web.hazards['mirrors'].names[0]}/"]:
        status, headers, body = get(running, url, Accept_Encoding="gzip, br")
        assert (status, headers["content-encoding"]) == (200, "gzip")
        assert gzip.decompress(body) == running.web.page(url).body
        assert len(body) < len(running.web.page(url).body) / 2


def test_brotli_for_whoever_takes_nothing_else(running: RunningWeb) -> None:
    for url in [*_http_pages(running.web, 3), f"http://www.{running.web.hazards['mirrors'].names[0]}/"]:
        status, headers, body = get(running, url, Accept_Encoding="br")
        assert (status, headers["content-encoding"]) == (200, "br")
        assert brotli.decompress(body) == running.web.page(url).body


def test_any_address_answers_as_a_proxy(running: RunningWeb) -> None:
    for url in _http_pages(running.web, 3):
        host = url.split("/")[2]
        request = f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert _raw(running, request.encode()).endswith(running.web.page(url).body)


def test_https_certificates_verify_for_each_host(running: RunningWeb) -> None:
    urls = [running.web.url(page) for page in range(0, 5_000, 41)]
    secure = [url for url in urls if url.startswith("https:")][:5]
    assert len({url.split("/")[2] for url in secure}) > 3
    for url in secure:
        status, _, body = get(running, url)
        assert (status, body) == (200, running.web.page(url).body)
        status, headers, _ = get(running, url.replace("https:", "http:"))
        assert (status, headers["location"]) == (301, url)


def test_https_is_not_trusted_without_the_authority(running: RunningWeb) -> None:
    url = next(url for page in range(5_000) if (url := running.web.url(page)).startswith("https:"))
    host = url.split("/")[2]
    address = running.web.server(host)
    assert address
    context = ssl.create_default_context()
    client = socket.create_connection((address, running.https_port or 0), timeout=5)
    with client, pytest.raises(ssl.SSLCertVerificationError):
        context.wrap_socket(client, server_hostname=host)


def test_only_loopback_is_bound() -> None:
    sockets = _bind_all([server_address(number) for number in range(10)], 0)
    assert len({bound.getsockname()[1] for bound in sockets}) == 1
    assert all(bound.getsockname()[0].startswith("127.") for bound in sockets)
    port = sockets[0].getsockname()[1]
    sockets[0].listen()
    with pytest.raises(UsageError, match="choose another"):
        _bind_all([server_address(0)], port)
    for bound in sockets:
        bound.close()


class _Transport(asyncio.Transport):
    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1), "sockname": ("127.16.0.1", 80)})
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(("peer", "refused"), [("127.9.9.9", False), ("192.0.2.1", True), ("10.0.0.1", True)])
def test_strangers_are_refused(small: Web, peer: str, refused: bool) -> None:
    transport = _Transport(peer)
    Connection(Service(small), "http").connection_made(transport)
    assert transport.aborted == refused


async def _fetch(server: Server, host: str) -> bytes:
    address = server.web.server(host)
    assert address
    reader, writer = await asyncio.open_connection(address, server.http_port)
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return data


def test_requests_are_kept_in_memory_when_asked() -> None:
    async def run() -> list[LoggedRequest]:
        server = Server(Web(WebSpec(pages=100, servers=2)), log="memory")
        await server.start()
        try:
            assert (await _fetch(server, server.web.seeds()[0].split("/")[2])).startswith(b"HTTP/1.1 200")
        finally:
            await server.stop()
        return server.requests

    entries = asyncio.run(run())
    assert [(entry.path, entry.status) for entry in entries] == [("/", 200)]


def test_the_log_file_has_every_request(tmp_path: Path) -> None:
    path = tmp_path / "requests.tsv"
    web = Web(WebSpec(pages=100, servers=2))
    host = web.seeds()[0].split("/")[2]

    async def run() -> None:
        server = Server(web, log=path)
        await server.start()
        for _ in range(3):
            await _fetch(server, host)
        await server.stop()

    asyncio.run(run())
    entries = read_log(path)
    assert [(entry.address, entry.host, entry.path, entry.status) for entry in entries] == [
        (web.server(host), host, "/", 200)
    ] * 3
    assert entries[0].time < entries[1].time < entries[2].time


def test_https_needs_a_place_for_its_authority() -> None:
    with pytest.raises(UsageError, match="authority"):
        Server(Web(WebSpec(pages=100)), https_port=0)
    with pytest.raises(UsageError, match="HTTPS port"):
        Server(Web(WebSpec(pages=100, https_share=0.5)))
