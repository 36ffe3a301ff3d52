"""`barkspider fetch` as an operator runs it, against the synthetic web."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from barkspider.lab.synthweb import RunningWeb, WebSpec, parse_hazards, running_web
from barkspider.url import RobotsRules, origin
from tests.cli.test_usage import run


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: bytes
    errors: bytes


Command = Callable[..., Done]


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    spec = WebSpec(seed=2, pages=500, page_bytes=3_000, hazards=parse_hazards("redirects"))
    with running_web(spec, https=True) as web:
        yield web


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """`barkspider fetch` with these arguments."""

    def done(*arguments: str) -> Done:
        return Done(run(monkeypatch, "fetch", *arguments), *capfdbinary.readouterr())

    return done


@pytest.fixture
def fetch(served: RunningWeb, command: Command) -> Command:
    """The same, with the settings that find the synthetic web."""
    chosen = [part for name, value in served.settings().items() for part in ("--set", f"{name}={value}")]
    return lambda *arguments: command(*arguments, *chosen)


def test_every_step_is_shown(served: RunningWeb, fetch: Command) -> None:
    url = served.web.seeds(1)[0].replace("http://", "https://")
    done = fetch(url)
    text = done.output.decode()
    assert done.code == 0
    for begin in (
        "name       127.",
        "robots     allowed",
        "> GET / HTTP/1.1",
        "< HTTP/1.1 200 OK",
        "time       connect ",
    ):
        assert f"\n{begin}" in text
    assert text.splitlines()[-1] == "outcome    ok"


def test_for_programs_it_is_one_object(served: RunningWeb, fetch: Command) -> None:
    url = served.web.seeds(1)[0].replace("http://", "https://")
    found = json.loads(fetch(url, "--json").output)
    assert (found["outcome"], found["status"], found["robots"]["allowed"]) == ("ok", 200, True)
    assert set(found["seconds"]) == {"dns", "connect", "tls", "first_byte", "body"}
    assert min(found["seconds"].values()) >= 0
    assert found["seconds"]["tls"] > 0
    assert found["addresses"][0] == found["address"]
    assert found["bytes"] > 0


def test_the_body_goes_to_the_output_alone(served: RunningWeb, fetch: Command) -> None:
    url = served.web.seeds(1)[0]
    done = fetch(url, "--body")
    assert done.output == served.web.page(url).body
    assert b"outcome    ok" in done.errors


def test_a_redirect_is_shown_and_not_followed(served: RunningWeb, fetch: Command) -> None:
    url = served.web.hazards["redirects"].entries()[1]
    found = json.loads(fetch(url, "--json").output)
    assert (found["outcome"], found["redirect"]) == ("redirect", url + "index.html")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "redirect"),
        ("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "redirect"),
        ("HTTP/1.1 000 Odd\r\n\r\n", "protocol_error"),
    ],
)
def test_an_odd_answer_is_shown_and_leads_nowhere(command: Command, answer: str, outcome: str) -> None:
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
        done = command(url, "--json", "--ignore-robots", "--allow-network", "127.0.0.0/8")
        robots.join()
        page.join()
    found = json.loads(done.output)
    assert (found["outcome"], found["redirect"], done.errors) == (outcome, "", b"")


@pytest.mark.parametrize(
    ("robots", "outcome"),
    [
        ("200 OK\r\n\r\nUser-agent: *\nDisallow: /private", "refused_robots"),
        ("200 OK\r\n\r\nUser-agent: *\nCrawl-delay: 86400", "refused_crawl_delay"),
        ("429 Too Many Requests\r\n\r\n", "refused_robots_unreachable"),
        ("503 Service Unavailable\r\n\r\n", "refused_robots_unreachable"),
        ("404 Not Found\r\n\r\n", "http_410"),
    ],
)
def test_robots_txt_is_judged_as_a_crawl_does(command: Command, robots: str, outcome: str) -> None:
    """The names are those under which a crawl counts what it refuses (`frontier.robots.rules`)."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/private"

        def serve() -> None:
            for answer in (robots, "410 Gone\r\n\r\n"):
                connection, _ = listening.accept()
                with connection:
                    if connection.recv(65536):
                        connection.sendall(f"HTTP/1.1 {answer}".encode())

        server = threading.Thread(target=serve)
        server.start()
        done = command(url, "--json", "--allow-network", "127.0.0.0/8")
        socket.create_connection(listening.getsockname()).close()  # where the page was not asked for
        server.join()
    assert json.loads(done.output)["outcome"] == outcome


def test_a_robots_txt_that_cannot_be_had_says_why(command: Command) -> None:
    done = command("http://127.0.0.1:1/", "--allow-network", "127.0.0.0/8")
    assert b"robots.txt: connect_failed)\n           Connection refused\n" in done.output
    assert done.output.endswith(b"outcome    refused_robots_unreachable\n")


def test_no_such_name_is_an_outcome_and_exit_code_1(fetch: Command) -> None:
    done = fetch("http://no-such-name.example/")
    assert (done.code, done.output.decode().splitlines()[-1]) == (1, "outcome    dns_no_name")


@pytest.mark.parametrize("url", ["ftp://example.org/", "no url", "http://10.0.0.1/"])
def test_what_cannot_be_fetched_gets_one_line(fetch: Command, url: str) -> None:
    done = fetch(url)
    assert done.code == 2
    assert done.errors.decode().startswith("barkspider: ")
    assert done.errors.count(b"\n") == 1


def test_what_robots_txt_forbids_is_not_asked_for(served: RunningWeb, fetch: Command) -> None:
    forbidden = next(filter(None, (_forbidden(served, url) for url in served.web.seeds(200))))
    found = json.loads(fetch(forbidden, "--json").output)
    verdict = (found["outcome"], found["robots"]["allowed"], "request" in found)
    assert verdict == ("refused_robots", False, False)
    found = json.loads(fetch(forbidden, "--json", "--ignore-robots").output)
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
