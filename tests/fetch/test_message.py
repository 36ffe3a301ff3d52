"""Reading responses from pieces, without a network: framing, limits, and what two parsers may differ on."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.settings import Fetch
from barkspider.fetch.exchange import HttpExchange
from barkspider.fetch.message import Message

LIMITS = Fetch(max_size=5000, max_header=2000)
# Errors to llhttp that browsers read.
READ_ALL_THE_SAME = {
    "Only LFs present and no body": "ok",
    "Only LFs present": "ok",
    "No carriage ret": "ok",
    "Spaces in header name": "ok",
    "Trailing space on chunked body": "ok",
    "No extension after semicolon": "ok",
    "Unbalanced chunk extensions quoting": "cut_disconnect",
}
CASES = Path(__file__).parents[3] / "shared/data/http/llhttp_cases.jsonl"


def read(*pieces: bytes, limits: Fetch = LIMITS, any_type: bool = True) -> HttpExchange:
    """What a response comes to when it arrives in these pieces and then the connection ends."""
    message = Message(limits, any_type)
    for piece in pieces:
        if message.feed(piece):
            break
    else:
        message.end()
    return message.exchange()


def response(*headers: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode() + body


# What browsers read and a strict parser does not: the answer, its body, and what is put right.
REPAIRED = {
    "line feeds alone": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", b"hello", "line ends"),
    "an empty line of a line feed": (b"HTTP/1.1 200 OK\r\nX: a\r\n\nhello", b"hello", "line ends"),
    "a folded header": (
        response("X: a", "\t b", " c", "Content-Length: 5", body=b"hello"),
        b"hello",
        "folded lines",
    ),
    "a length twice": (
        response("Content-Length: 5", "content-length:5", body=b"hello"),
        b"hello",
        "equal lengths",
    ),
    "a length twice in one": (response("Content-Length: 5, 5", body=b"hello"), b"hello", "equal lengths"),
    "identity": (response("Transfer-Encoding: identity", body=b"hello"), b"hello", "identity"),
    "identity and a length": (
        response("Transfer-Encoding: Identity", "Content-Length: 5", body=b"hello"),
        b"hello",
        "identity",
    ),
    "identity before chunked": (
        response("Transfer-Encoding: identity, chunked", body=b"5\r\nhello\r\n0\r\n\r\n"),
        b"hello",
        "identity",
    ),
    "a blank before the colon": (
        response("Content-Length : 5", body=b"hello"),
        b"hello",
        "blanks before colons",
    ),
    "a line that is no header": (
        response("HTTP/1.1 200 OK", "en-US Content-Type: text/xml", "Content-Length: 5", body=b"hello"),
        b"hello",
        "lines that are no headers",
    ),
    "a length beside chunks": (
        response("Content-Length: 9", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"),
        b"hello",
        "a length beside chunks",
    ),
    "chunk lines of line feeds": (
        response("Transfer-Encoding: chunked", body=b"2\r\nhe\r\n3;x=y\nllo\n0\nA: b\n\n"),
        b"hello",
        "chunk lines",
    ),
    "chunk sizes with blanks": (
        response("Transfer-Encoding: chunked", body=b"5   \r\nhello\r\n0   \r\n\r\n"),
        b"hello",
        "chunk lines",
    ),
    "all at once": (
        b"HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nX : a\n b\nContent-Length: 5\n"
        b"Transfer-Encoding: chunked\n\n5\nhello\n0\n\n",
        b"hello",
        "line ends, folded lines, blanks before colons, a length beside chunks, chunk lines",
    ),
}

WHOLE = {
    "length": (response("Content-Length: 5", body=b"hello"), b"hello"),
    "chunks": (
        response("Transfer-Encoding: chunked", body=b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"),
        b"hello",
    ),
    "trailers": (response("Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\nA: b\r\n\r\n"), b"hello"),
    "until the end": (response("Content-Type: text/html", body=b"hello"), b"hello"),
    "empty": (response("Content-Length: 0"), b""),
    "no content": (response(status="204 No Content"), b""),
    "not modified": (response("Content-Length: 500", status="304 Not Modified"), b""),
    "interim": (response(status="100 Continue") + response("Content-Length: 5", body=b"hello"), b"hello"),
    "early hints": (
        response("Link: </a>", status="103 Early Hints") + response("Content-Length: 5", body=b"hello"),
        b"hello",
    ),
    "offers another protocol": (
        response("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 5", body=b"hello"),
        b"hello",
    ),
    "empty lines around": (b"\r\n" + response("Content-Length: 5", body=b"hello\r\n"), b"hello"),
}


@pytest.mark.parametrize("name", WHOLE)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_pieces_of_any_size_make_the_same_message(name: str, cuts: list[int]) -> None:
    raw, body = WHOLE[name]
    places = [0, *sorted(cuts), len(raw)]
    found = read(*(raw[start:end] for start, end in pairwise(places)))
    assert (found.failure, found.cut, found.body) == ("", "", body)
    final = raw[raw.rindex(b"HTTP/1.1") :]
    assert found.head + found.payload == (final.rstrip(b"\r\n") if name == "empty lines around" else final)
    assert "Link" not in dict(found.headers)


@pytest.mark.parametrize("name", REPAIRED)
@given(cuts=st.lists(st.integers(0, 160), max_size=6))
def test_what_browsers_read_is_read_and_the_connection_is_not_used_again(name: str, cuts: list[int]) -> None:
    raw, body, repaired = REPAIRED[name]
    places = [0, *sorted(cuts), len(raw)]
    message = Message(LIMITS)
    for start, end in pairwise(places):
        message.feed(raw[start:end])
    message.end()
    assert not message.keep_alive
    found = message.exchange()
    assert (found.outcome, found.body, found.repaired) == ("ok", body, repaired)
    assert found.head + found.payload == raw[raw.index(b"HTTP/1.1 200") :]


def test_a_head_that_was_put_right_has_the_headers_that_were_meant() -> None:
    raw = b"HTTP/1.1 200 OK\nX : a\n  b\nnonsense\nSet-Cookie: c=d\nContent-Length: 0\n\n"
    assert read(raw).headers == [(b"X", b"a b"), (b"Set-Cookie", b"c=d"), (b"Content-Length", b"0")]


def test_headers_are_found_by_name_whatever_its_case_and_however_often_they_come() -> None:
    exchange = HttpExchange(headers=[(b"Set-Cookie", b"a=1 "), (b"X", b"y"), (b"SET-COOKIE", b"b=2")])
    assert exchange.header(b"set-cookie") == "a=1"
    assert exchange.all_headers(b"set-cookie") == ["a=1", "b=2"]
    assert (exchange.header(b"y"), exchange.all_headers(b"y")) == ("", [])
    exchange.forget_headers()
    exchange.headers.append((b"x", b"z"))
    assert (exchange.header(b"x"), exchange.all_headers(b"set-cookie")) == ("z", [])


def test_a_broken_head_that_never_ends_is_a_protocol_error() -> None:
    assert read(b"HTTP/1.1 200 OK\nX: y\n").outcome == "protocol_error"
    assert read(b"HTTP/1.1 200 OK\n", *[b"X: y\n"] * 1000).outcome == "headers_too_large"


def test_no_line_of_a_chunk_is_longer_than_browsers_take() -> None:
    limits = replace(LIMITS, max_size=100_000)
    raw = response("Transfer-Encoding: chunked", body=b"5\nhello\n")
    assert read(raw, b"5;" + b"e" * 16_000 + b"\nhello\n0\n\n", limits=limits).body == b"hellohello"
    assert read(raw, b"5;" + b"e" * 17_000, limits=limits).detail == "a chunk line is too long"


def test_chunks_that_are_read_again_have_the_same_limits() -> None:
    raw = response("Transfer-Encoding: chunked", body=b"1\nx\n" * 6_000)
    assert read(*(raw[at : at + 700] for at in range(0, len(raw), 700))).outcome == "cut_length"
    limits = replace(Fetch(), parse_timeout=0.0)
    assert read(raw, limits=limits).outcome == "cut_parse"


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (response("Content-Length: 5", body=b"hello") * 2, "bytes after the end"),
        (response("Transfer-Encoding: chunked", body=b"0\r\n\r\n") * 2, "bytes after the end"),
        (response("Content-Length: 5", body=b"hello and more"), "bytes after the end"),
        (response("Content-Length: 5", "Content-Length: 6", body=b"hello"), "Content-Length"),
        (response("Content-Length: 5", "Transfer-Encoding: chunked", body=b"hello"), "chunk"),
        (response("Content-Length: 5", "Content-Length: 6", "Transfer-Encoding: chunked"), "Content-Length"),
        (response("Transfer-Encoding: chunked, identity", body=b"5\r\nhello\r\n0\r\n\r\n"), "coding"),
        (response("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "coding"),
        (response("Transfer-Encoding: gzip, chunked"), "coding"),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello", "Content-Length"),
        (b"HTTP/1.1 200 OK\nX: a\0b\n\n", "CR"),
        (b"HTTP/1.1 200 OK\nX: a\rb\n\n", "CR"),
        (b"HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 0\r\n\r\n", "start line"),
        (response("Transfer-Encoding: chunked", body=b"5\nhelloX\n0\n\n"), "chunk"),
        (response("Transfer-Encoding: chunked", body=b"0x5\nhello\n0\n\n"), "chunk"),
        (response("Transfer-Encoding: chunked", body=b"5;\0\nhello\n0\n\n"), "chunk"),
        (response("Transfer-Encoding: chunked", body=b"1" * 16 + b"\nhello"), "chunk"),
        (response("Transfer-Encoding: chunked", body=b"5\nhello\n0\n\nHTTP/1.1 200 OK\n\n"), "bytes after"),
        (response("Transfer-Encoding: chunked", body=b"5\r\nhelloXX0\r\n\r\n"), "chunk"),
        (response("X: a\0b"), "header value"),
        (response(status="101 Switching Protocols"), ""),
        (response(status="100 Continue") * 11, "interim"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ""),
        (b"220 mail.example ESMTP\r\n", ""),
        (
            response("Transfer-Encoding: chunked", body=b"1\r\nx\r\n0\r\n" + b"A: b\r\n" * 129 + b"\r\n"),
            "trailers",
        ),
        (
            response("Transfer-Encoding: chunked", body=b"1\nx\n0\n" + b"A: b\n" * 129 + b"\n"),
            "trailers",
        ),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(raw: bytes, detail: str) -> None:
    found = read(raw)
    assert found.outcome == "protocol_error"
    assert detail in found.detail


def test_headers_have_a_limit() -> None:
    assert read(b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 1000).outcome == "headers_too_large"
    assert read(b"HTTP/1.1 200 OK\r\nX: ", *[b"y" * 100] * 100).outcome == "headers_too_large"


def test_interim_responses_count_as_headers_too() -> None:
    large = response("X: " + "y" * 1000, status="103 Early Hints")
    assert read(*[large] * 3).outcome == "headers_too_large"


@pytest.mark.parametrize(
    "raw",
    [
        response("Content-Length: 9000", body=b"x" * 9000),
        response(body=b"x" * 9000),
        response("Transfer-Encoding: chunked", body=b"2328\r\n" + b"x" * 9000 + b"\r\n0\r\n\r\n"),
    ],
)
def test_a_body_is_cut_at_the_limit(raw: bytes) -> None:
    found = read(*(raw[start : start + 700] for start in range(0, len(raw), 700)))
    assert (found.outcome, found.truncated, found.body) == ("cut_length", "length", b"x" * 5000)
    assert raw.startswith(found.head + found.payload)


def test_chunk_extensions_have_a_limit_too() -> None:
    found = read(response("Transfer-Encoding: chunked"), *[b"1;" + b"e" * 500 + b"\r\nx\r\n"] * 50)
    assert (found.outcome, len(found.payload) < 3 * LIMITS.max_size) == ("cut_length", True)


def test_tiny_chunks_end_when_they_cost_too_much() -> None:
    limits = replace(Fetch(), parse_timeout=0.0)
    found = read(response("Transfer-Encoding: chunked"), b"1\r\nx\r\n" * 100, limits=limits)
    assert (found.outcome, found.truncated) == ("cut_parse", "time")


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (b"", "disconnected"),
        (b"HTTP/1.1 200 OK\r\nContent-", "disconnected"),
        (response("Content-Length: 9", body=b"part"), "cut_disconnect"),
        (response("Transfer-Encoding: chunked", body=b"9\r\npart"), "cut_disconnect"),
    ],
)
def test_an_early_end_is_told_from_a_whole_message(raw: bytes, outcome: str) -> None:
    found = read(raw)
    assert found.outcome == outcome
    assert raw.endswith(found.head + found.payload)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("text/html; charset=utf-8", "ok"),
        ("TEXT/Plain", "ok"),
        ("application/zip", "unwanted_type"),
        ("", "ok"),
    ],
)
def test_an_unwanted_type_is_left_at_the_headers(kind: str, outcome: str) -> None:
    limits = replace(LIMITS, types=("text/*", "application/xhtml+xml"))
    raw = response(f"Content-Type: {kind}", "Content-Length: 4", body=b"body")
    assert read(raw, limits=limits, any_type=False).outcome == outcome
    assert read(raw, limits=limits).outcome == "ok"
    error = response(f"Content-Type: {kind}", "Content-Length: 0", status="404 Not Found")
    assert read(error, limits=limits, any_type=False).outcome == "http_404"


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (["Content-Length: 1"], True),
        (["Content-Length: 1", "Connection: close"], False),
        ([], False),
    ],
)
def test_a_connection_is_kept_when_both_know_where_the_message_ends(headers: list[str], kept: bool) -> None:
    message = Message(LIMITS)
    message.feed(response(*headers, body=b"x"))
    assert (message.over and message.keep_alive) is kept


@pytest.mark.skipif(not CASES.exists(), reason="the cases of llhttp are not beside the project")
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_every_response_that_llhttp_calls_an_error_is_one(step: int) -> None:
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    wrong = [case for case in cases if case["meta"]["type"] == "response" and case["error"]]
    assert len(wrong) == 26
    for case in wrong:
        raw = base64.b64decode(case["input_b64"])
        if step < len(raw) and "Data after" in case["error"][1]:
            continue  # bytes behind the end that come later find the connection closed
        pieces = [raw[start : start + step] for start in range(0, len(raw), step)]
        expected = READ_ALL_THE_SAME.get(case["title"], "protocol_error")
        assert read(*pieces).outcome == expected, case["title"]


@given(raw=st.binary(max_size=300), cut=st.integers(0, 300))
def test_any_bytes_come_to_an_end(raw: bytes, cut: int) -> None:
    found = read(b"HTTP/1.1 200 OK\r\n" + raw[:cut], raw[cut:])
    assert found.outcome
    assert len(found.body) <= len(raw)
