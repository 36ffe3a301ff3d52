"""`barkspider fetch` as an operator runs it, against the synthetic web."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from barkspider.synthweb import RunningWeb, WebSpec, parse_hazards, running_web
from barkspider.url import RobotsRules, origin

PROGRAM = [sys.executable, "-m", "barkspider.cli", "fetch"]


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    spec = WebSpec(seed=2, pages=500, page_bytes=3_000, hazards=parse_hazards("redirects"))
    with running_web(spec, https=True) as web:
        yield web


def fetch(served: RunningWeb, url: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    chosen = [part for name, value in served.settings().items() for part in ("--set", f"{name}={value}")]
    return subprocess.run([*PROGRAM, url, *options, *chosen], capture_output=True, timeout=60)


def test_every_step_is_shown(served: RunningWeb) -> None:
    url = served.web.seeds(1)[0].replace("http://", "https://")
    done = fetch(served, url)
    text = done.stdout.decode()
    assert done.returncode == 0
    for begin in (
        "name       127.",
        "robots     allowed",
        "> GET / HTTP/1.1",
        "< HTTP/1.1 200 OK",
        "time       connect ",
    ):
        assert f"\n{begin}" in text
    assert text.splitlines()[-1] == "outcome    ok"


def test_for_programs_it_is_one_object(served: RunningWeb) -> None:
    url = served.web.seeds(1)[0].replace("http://", "https://")
    found = json.loads(fetch(served, url, "--json").stdout)
    assert (found["outcome"], found["status"], found["robots"]["allowed"]) == ("ok", 200, True)
    assert set(found["seconds"]) == {"dns", "connect", "tls", "first_byte", "body"}
    assert min(found["seconds"].values()) >= 0
    assert found["seconds"]["tls"] > 0
    assert found["addresses"][0] == found["address"]
    assert found["bytes"] > 0


def test_the_body_goes_to_the_output_alone(served: RunningWeb) -> None:
    url = served.web.seeds(1)[0]
    done = fetch(served, url, "--body")
    assert done.stdout == served.web.page(url).body
    assert b"outcome    ok" in done.stderr


def test_a_redirect_is_shown_and_not_followed(served: RunningWeb) -> None:
    url = served.web.hazards["redirects"].entries()[1]
    found = json.loads(fetch(served, url, "--json").stdout)
    assert (found["outcome"], found["redirect"]) == ("redirect", url + "index.html")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "redirect"),
        ("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "redirect"),
        ("HTTP/1.1 000 Odd\r\n\r\n", "protocol_error"),
    ],
)
def test_an_odd_answer_is_shown_and_leads_nowhere(answer: str, outcome: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer.encode())

        robots, page = threading.Thread(target=serve), threading.Thread(target=serve)
        robots.start()
        page.start()
        done = subprocess.run(
            [*PROGRAM, url, "--json", "--ignore-robots", "--allow-network", "127.0.0.0/8"],
            capture_output=True,
            timeout=60,
        )
        robots.join()
        page.join()
    found = json.loads(done.stdout)
    assert (found["outcome"], found["redirect"], done.stderr) == (outcome, "", b"")


def test_a_robots_txt_that_cannot_be_had_says_why() -> None:
    done = subprocess.run(
        [*PROGRAM, "http://127.0.0.1:1/", "--allow-network", "127.0.0.0/8"], capture_output=True, timeout=60
    )
    assert b"robots.txt: connect_failed)\n           Connection refused\n" in done.stdout
    assert done.stdout.endswith(b"outcome    refused_robots_unreachable\n")


def test_no_such_name_is_an_outcome_and_exit_code_1(served: RunningWeb) -> None:
    done = fetch(served, "http://no-such-name.example/")
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (1, "outcome    dns_no_name")


@pytest.mark.parametrize("url", ["ftp://example.org/", "no url", "http://10.0.0.1/"])
def test_what_cannot_be_fetched_gets_one_line(served: RunningWeb, url: str) -> None:
    done = fetch(served, url)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("barkspider: ")
    assert done.stderr.count(b"\n") == 1


def test_what_robots_txt_forbids_is_not_asked_for(served: RunningWeb) -> None:
    forbidden = next(filter(None, (_forbidden(served, url) for url in served.web.seeds(200))))
    found = json.loads(fetch(served, forbidden, "--json").stdout)
    verdict = (found["outcome"], found["robots"]["allowed"], "request" in found)
    assert verdict == ("refused_robots", False, False)
    found = json.loads(fetch(served, forbidden, "--json", "--ignore-robots").stdout)
    assert (found["robots"]["allowed"], "request" in found) == (False, True)


def _forbidden(served: RunningWeb, url: str) -> str:
    """A URL of the same origin that robots.txt forbids, or ""."""
    name = origin(url)
    answer = served.web.page(f"{name}/robots.txt")
    rules = RobotsRules.parse(answer.body, "barkspider")
    paths = [
        line.partition(":")[2].strip()
        for line in answer.body.decode().splitlines()
        if line.startswith("Disallow: /")
    ]
    return next((name + path for path in paths if answer.status == 200 and not rules.allows(path)), "")
