"""Keys and indexes: SURT by the rules of the Internet Archive, lines in order, merging, looking up."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.archive import WarcWriter
from barkspider.archive.captures import captures
from barkspider.archive.cdxj import INDEX, Lines, index_name, look_up, merge, parse_line
from barkspider.archive.surt import surt
from barkspider.core.settings import Archive
from barkspider.storage.env import Env
from barkspider.url import parse

NOW = 1_800_000_000.25


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://www2.Example.com:443/A/B/?z=1&a=2&a=1", "com,example)/a/b?a=1&a=2&z=1"),
        ("http://a.b.example.co.uk:8080/x//y/../z/./?", "uk,co,example,b,a:8080)/x/z"),
        ("http://127.0.0.1/a", "1,0,0,127)/a"),
        ("http://[::1]/x", "::1)/x"),
        ("http://example.com/%7Euser/%2541/%25", "com,example)/~user/a/%25"),
        ("http://example.com/a%20b?q=a%20b+c&=x&y", "com,example)/a%20b?=x&q=a%20b+c&y"),
        ("http://example.com/?b&a=&a", "com,example)/?a&a=&b"),
        ("http://example.com/(S(4hqa0555fwsecu455xqckv45))/a/B.aspx?x=1", "com,example)/a/b.aspx?x=1"),
        ("http://example.com/p?jsessionid=0123456789abcdefghijklemopqrstuv&x=1", "com,example)/p?x=1"),
        ("http://example.com/p?x=1&cfid=1234&cftoken=5678&q=2", "com,example)/p?q=2&x=1"),
        ("http://wwwx.example.com/", "com,example,wwwx)/"),
        ("http://bücher.example/ü", "example,xn--bcher-kva)/%c3%bc"),
        ("http://example.com/%2F%2e%2E/x", "com,example)/x"),
    ],
)
def test_keys_follow_the_rules_of_the_internet_archive(url: str, key: str) -> None:
    assert surt(str(parse(url))) == key


@given(st.text(st.sampled_from("aA%25/.?&=41 \u00fc#+;"), max_size=60))
def test_a_key_is_one_word_and_does_not_change_with_escapes(tail: str) -> None:
    url = str(parse(f"http://example.com/{tail}"))
    key = surt(url)
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key
    assert key == key.lower()


def test_escapes_within_escapes_take_linear_time() -> None:
    deep = "%" + "25" * 30_000 + "41"
    assert surt(f"http://example.com/{deep}") == "com,example)/a"


def write(folder: Path, urls: list[str], size: int = 1_000_000) -> None:
    writer = WarcWriter(Env(), folder, "test", Archive(warc_size=size), {})
    for number, url in enumerate(urls):
        response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%d" % number
        writer.write_exchange(url, b"GET /", response, "192.0.2.1", NOW + number)
    writer.close()


def test_indexes_are_merged_into_one_in_order(tmp_path: Path) -> None:
    urls = [f"http://example.com/{number}" for number in range(300)]
    random.Random(1).shuffle(urls)
    write(tmp_path, urls, size=5_000)
    parts = sorted(tmp_path.glob("*.cdxj"))
    assert len(parts) > 3
    parts[1].unlink()  # a crash came between the file and its index
    assert merge(Env(), tmp_path) == merge(Env(), tmp_path) == 300
    lines = (tmp_path / INDEX).read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    found = [parse_line(line) for line in lines]
    assert {line["url"] for line in found} == set(urls)
    for line in found[::50]:
        data = (tmp_path / line["filename"]).read_bytes()
        assert len(data) >= int(line["offset"]) + int(line["length"])
        assert (line["mime"], line["status"], len(line["digest"])) == ("text/html", "200", 32)
        assert line["timestamp"].startswith("20270115080")


def test_nothing_archived_is_an_empty_index(tmp_path: Path) -> None:
    assert merge(Env(), tmp_path) == 0
    assert (tmp_path / INDEX).read_bytes() == b""


def test_looking_up_finds_every_line_of_a_key_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.cdxj._PIECE", 256)  # so that a small file is searched too
    path = tmp_path / "x.cdxj"
    keys = sorted(f"com,example)/{number}" for number in range(0, 1000, 3))
    path.write_text("".join(f"{key} 2027011508000{time} {{}}\n" for key in keys for time in range(2)))
    for number in range(1000):
        found = look_up(Env(), path, f"com,example)/{number}")
        assert len(found) == (0 if number % 3 else 2)
        assert all(line.startswith(f"com,example)/{number} ".encode()) for line in found)


def test_captures_come_from_closed_and_growing_files(tmp_path: Path) -> None:
    write(tmp_path, ["http://example.com/a", "http://example.com/b", "http://www.example.com/a"])
    writer = WarcWriter(Env(), tmp_path, "test", Archive(), {})
    writer.write_exchange("http://example.com/a", b"", b"HTTP/1.1 404 No\r\n\r\n", "192.0.2.1", NOW + 1000)
    writer.flush()
    found = captures(Env(), tmp_path, "http://example.com/a")
    assert [line["status"] for line in found] == ["200", "404"]  # of this URL, though www. has the same key
    assert captures(Env(), tmp_path, "http://example.com/c") == []
    writer.close()


def test_a_hostile_url_or_type_stays_one_line_of_json(tmp_path: Path) -> None:
    writer = WarcWriter(Env(), tmp_path, "test", Archive(), {})
    evil = b'HTTP/1.1 200 OK\r\nContent-Type: a"}\nx 1 {/b\r\n\r\n'
    for url in ('http://example.com/"\n} {', "not a url\r\n", "http://[/", "http://a:b/"):
        stored = writer.write_exchange(url, b"", evil, "192.0.2.1", NOW)
    writer.close()
    lines = (tmp_path / index_name(stored.file)).read_text().splitlines()
    assert len(lines) == 4
    assert all(json.loads(line.split(" ", 2)[2])["mime"] == "unk" for line in lines)


@pytest.mark.parametrize("memory", [1, 200, 3_000, 1_000_000])
def test_an_index_is_the_same_however_many_of_its_lines_wait_in_memory(tmp_path: Path, memory: int) -> None:
    """With one byte each line is a run: more of them than are merged at a time."""
    chosen = random.Random(memory)
    lines = [b"%016x line\n" % chosen.getrandbits(64) for _ in range(150)]
    index = Lines(Env(), tmp_path / "a.cdxj", memory)
    for line in lines:
        index.append(line)
    assert index.size == sum(map(len, lines)) + 41 * len(lines)
    index.finish()
    assert (tmp_path / "a.cdxj").read_bytes() == b"".join(sorted(lines))
    assert [path.name for path in tmp_path.iterdir()] == ["a.cdxj"]
