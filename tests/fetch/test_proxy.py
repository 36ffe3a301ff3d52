import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Network
from barkspider.fetch.proxy import Handshake, Proxy, ProxyError

HTTP, SOCKS = "http://127.0.0.1:3128", "socks5://127.0.0.1:1080"
GREETED = b"\x05\x00"
OPENED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x04\x38"


def begin(proxy: str, address: str = "8.8.8.8", port: int = 443) -> Handshake:
    return Proxy.parse(proxy).handshake(address, port)


def talk(handshake: Handshake, *said: bytes) -> tuple[list[bytes], bool]:
    """What is sent at the beginning and after each thing that the proxy says, and whether the tunnel stands."""
    sent, stands = [handshake.send], False
    for data in said:
        handshake.send = b""
        stands = handshake.feed(data)
        sent.append(handshake.send)
    return sent, stands


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (HTTP, ("http", "127.0.0.1", 3128, "", "")),
        ("http://127.0.0.1:3128/", ("http", "127.0.0.1", 3128, "", "")),
        ("HTTP://Proxy.Example:80", ("http", "proxy.example", 80, "", "")),
        ("http://me:secret@127.0.0.1:3128", ("http", "127.0.0.1", 3128, "me", "secret")),
        ("http://me@127.0.0.1:3128", ("http", "127.0.0.1", 3128, "me", "")),
        ("http://me:a%40b%3Ac%2F%C3%BC@127.0.0.1:3128", ("http", "127.0.0.1", 3128, "me", "a@b:c/ü")),
        (SOCKS, ("socks5", "127.0.0.1", 1080, "", "")),
        ("socks5://a%3Ab:secret@[::1]:1080", ("socks5", "::1", 1080, "a:b", "secret")),
    ],
)
def test_a_proxy_is_read(text: str, fields: tuple[object, ...]) -> None:
    proxy = Proxy.parse(text)
    assert (proxy.kind, proxy.host, proxy.port, proxy.user, proxy.password) == fields


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "127.0.0.1:3128",
        "http://",
        "http://:3128",
        "http://127.0.0.1",
        "http://127.0.0.1:0",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:port",
        "http://me:secret@127.0.0.1",
        "http://me:secret@[::1:3128",
        "http://me:secret@[1:2]:3128",
        "http://me:secret@[fe80::1%25eth0]:3128",
        "http://me:secret@a b:3128",
        "http://me:secret%FF@127.0.0.1:3128",
        "http://m%3Ae:secret@127.0.0.1:3128",
        "http://127.0.0.1:3128/secret",
        "http://127.0.0.1:3128?secret",
        "http://127.0.0.1:3128#secret",
        "http://127.0.0.1:3128\n",
        "https://me:secret@127.0.0.1:3128",
        "socks4://me:secret@127.0.0.1:1080",
        "socks5://secret@127.0.0.1:1080",
        "socks5://:secret@127.0.0.1:1080",
        f"socks5://{'u' * 256}:secret@127.0.0.1:1080",
        f"socks5://u:{'secret' * 50}@127.0.0.1:1080",
    ],
)
def test_nonsense_is_refused_in_one_line_that_tells_no_secret(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Proxy.parse(text)
    message = str(caught.value)
    assert message.startswith("network.proxy: ")
    assert "secret" not in message.replace("password", "")
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_proxy_or_refused(text: str) -> None:
    try:
        proxy = Proxy.parse("http://" + text)
    except SettingsError:
        return
    assert proxy.host
    assert 0 < proxy.port < 65536


def test_credentials_are_not_shown() -> None:
    proxy = Proxy.parse("http://somebody:secret@127.0.0.1:3128")
    assert repr(proxy) == "Proxy(kind='http', host='127.0.0.1', port=3128)"
    assert "secret" not in repr(Network(proxy="http://somebody:secret@127.0.0.1:3128"))


@pytest.mark.parametrize(
    ("proxy", "address", "request_bytes"),
    [
        (HTTP, "8.8.8.8", b"CONNECT 8.8.8.8:443 HTTP/1.1\r\nHost: 8.8.8.8:443\r\n\r\n"),
        (
            HTTP,
            "2606:4700::1111",
            b"CONNECT [2606:4700::1111]:443 HTTP/1.1\r\nHost: [2606:4700::1111]:443\r\n\r\n",
        ),
        (
            "http://Aladdin:open%20sesame@127.0.0.1:3128",
            "8.8.8.8",
            b"CONNECT 8.8.8.8:443 HTTP/1.1\r\nHost: 8.8.8.8:443\r\n"
            b"Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n",
        ),
    ],
)
def test_http_asks_for_a_tunnel_to_an_address(proxy: str, address: str, request_bytes: bytes) -> None:
    sent, stands = talk(begin(proxy, address), b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
    assert (sent, stands) == ([request_bytes, b""], True)


@pytest.mark.parametrize("answer", [b"HTTP/1.0 200\r\n\r\n", b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"])
def test_any_success_of_http_opens_the_tunnel(answer: bytes) -> None:
    assert begin(HTTP).feed(answer) is True


@pytest.mark.parametrize("status", [100, 101, 301, 400, 403, 407, 500, 502, 503, 504])
def test_http_refuses_with_a_status(status: int) -> None:
    with pytest.raises(ProxyError, match=f"^the proxy answered {status}$"):
        begin(HTTP).feed(b"HTTP/1.1 %d No secret reason\r\nX: y\r\n\r\n" % status)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"\x05\x00" * 6, bytes(12), b"http/1.1 200 OK\r\n\r\n", b"HTTP/1.1 099 OK\r\n\r\n"],
)  # fmt: skip
def test_what_is_not_http_is_refused(answer: bytes) -> None:
    with pytest.raises(ProxyError, match="does not speak HTTP"):
        begin(HTTP).feed(answer)


@pytest.mark.parametrize(
    ("address", "request_bytes"),
    [
        ("8.8.4.4", b"\x05\x01\x00\x01\x08\x08\x04\x04\x01\xbb"),
        ("2606:4700::1111", b"\x05\x01\x00\x04\x26\x06\x47\x00" + bytes(10) + b"\x11\x11\x01\xbb"),
    ],
)
def test_socks_asks_for_a_tunnel_to_an_address(address: str, request_bytes: bytes) -> None:
    assert talk(begin(SOCKS, address), GREETED, OPENED) == ([b"\x05\x01\x00", request_bytes, b""], True)


@pytest.mark.parametrize(
    "bound", [b"\x01" + bytes(4), b"\x04" + bytes(16), b"\x03\x09localhost", b"\x03\x00", b"\x03\xff" + bytes(255)]
)  # fmt: skip
def test_socks_may_say_where_it_is_in_any_way(bound: bytes) -> None:
    handshake = begin(SOCKS)
    assert [handshake.feed(GREETED), handshake.feed(b"\x05\x00\x00" + bound + b"\x00\x50")] == [False, True]


def test_socks_logs_in_where_it_is_asked_to() -> None:
    with_user = "socks5://me:secret@127.0.0.1:1080"
    request = b"\x05\x01\x00\x01\x08\x08\x08\x08\x01\xbb"
    assert talk(begin(with_user), b"\x05\x02", b"\x01\x00", OPENED) == (
        [b"\x05\x02\x00\x02", b"\x01\x02me\x06secret", request, b""],
        True,
    )
    assert talk(begin(with_user), GREETED, OPENED) == ([b"\x05\x02\x00\x02", request, b""], True)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x05\xff", "another way to log in"),
        (b"\x05\x01", "another way to log in"),
        (b"\x05\x02", "another way to log in"),  # it was not offered
        (b"\x04\x00", "does not speak SOCKS5"),
        (b"HTTP/1.1 400 Bad\r\n\r\n", "does not speak SOCKS5"),
        (GREETED + b"\x04\x00\x00\x01", "does not speak SOCKS5"),
        (GREETED + b"\x05\x00\x00\x02", "address of no known type"),
    ],
)
def test_what_is_not_socks_is_refused(said: bytes, why: str) -> None:
    with pytest.raises(ProxyError, match=why):
        begin(SOCKS).feed(said)


@pytest.mark.parametrize("said", [b"\x01\x01", b"\x01\xff", b"\x05\x00"])
def test_a_wrong_password_is_refused_and_not_told(said: bytes) -> None:
    handshake = begin("socks5://me:secret@127.0.0.1:1080")
    assert handshake.feed(b"\x05\x02") is False
    with pytest.raises(ProxyError, match=r"^the proxy refused the user and password$"):
        handshake.feed(said)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (1, "general failure"),
        (2, "not allowed by its rules"),
        (3, "network unreachable"),
        (4, "host unreachable"),
        (5, "connection refused"),
        (6, "time to live expired"),
        (7, "command not supported"),
        (8, "address type not supported"),
        (9, "code 9"),
        (255, "code 255"),
    ],
)
def test_socks_refuses_with_a_code(code: int, why: str) -> None:
    with pytest.raises(ProxyError, match=f"^the proxy refused: {why}$"):
        begin(SOCKS).feed(GREETED + bytes([5, code, 0, 1]) + bytes(6))


ALL = [
    (HTTP, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
    (SOCKS, GREETED + OPENED),
    ("socks5://me:secret@127.0.0.1:1080", b"\x05\x02\x01\x00" + OPENED),
]


@pytest.mark.parametrize(("proxy", "answer"), ALL)
def test_answers_may_come_byte_by_byte(proxy: str, answer: bytes) -> None:
    whole, pieces = begin(proxy), begin(proxy)
    assert whole.feed(answer) is True
    assert [pieces.feed(answer[at : at + 1]) for at in range(len(answer))] == [False] * (len(answer) - 1) + [
        True
    ]
    assert pieces.send == whole.send


@pytest.mark.parametrize(("proxy", "answer"), ALL)
def test_bytes_after_the_answer_are_an_error(proxy: str, answer: bytes) -> None:
    with pytest.raises(ProxyError, match="went on speaking"):
        begin(proxy).feed(answer + b"x")


def test_a_proxy_that_does_not_come_to_an_end_is_left() -> None:
    handshake = begin(HTTP)
    assert handshake.feed(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 16_000) is False
    with pytest.raises(ProxyError, match="more than 16384 bytes"):
        handshake.feed(b"y" * 1000)


@settings(deadline=None)
@given(st.sampled_from([proxy for proxy, _ in ALL]), st.lists(st.binary(max_size=40), max_size=20))
def test_garbage_opens_no_tunnel_unnoticed(proxy: str, said: list[bytes]) -> None:
    handshake = begin(proxy)
    try:
        stands = any(handshake.feed(data) for data in said)
    except ProxyError:
        return
    heard = b"".join(said)
    assert not stands or heard.startswith((b"\x05", b"HTTP/1."))
