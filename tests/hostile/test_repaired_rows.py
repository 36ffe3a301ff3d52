"""What was put right in an answer stands in its row, of a page as of a robots.txt."""

from __future__ import annotations

from pathlib import Path

from barkspider import crawl, load_settings, open_job
from tests.hostile.hazard import DOMAIN, site
from tests.hostile.replies import REPLIES
from tests.hostile.server import ADDRESS, hostile_server, ok

_HOST = f"repaired.{DOMAIN}"
_ROBOTS = b"HTTP/1.1 200 OK\nContent-Length: 35\n\nUser-agent: *\nDisallow: /forbidden\n"


def test_what_was_put_right_stands_in_the_row(tmp_path: Path) -> None:
    replies = {f"/{number}": reply for number, reply in enumerate(REPLIES) if reply.repaired}
    answers = {path: reply.raw for path, reply in replies.items()}
    served = {**answers, "/robots.txt": _ROBOTS, "/right": ok(b"hi"), "/forbidden": ok(b"hi")}
    with hostile_server({_HOST: site(served)}, {_HOST: [[ADDRESS]]}, {ADDRESS}) as server:
        options = [
            *(f"network.allow={ADDRESS}/32", f"network.ports={ADDRESS}/32:80={server.http_port}"),
            *(
                f"dns.servers=127.0.0.1:{server.dns_port}",
                "politeness.host_delay=0s",
                "politeness.server_delay=0s",
            ),
        ]
        seeds = [f"http://{_HOST}{path}" for path in (*replies, "/right", "/forbidden")]
        crawl(seeds, tmp_path / "job", load_settings(options=options))
    job = open_job(tmp_path / "job")
    pages = job.query("SELECT url_path, outcome, fetch_repaired FROM pages").to_pylist()
    assert {page["url_path"]: page["fetch_repaired"] for page in pages} == {
        **{path: reply.repaired for path, reply in replies.items()},
        "/right": None,
    }
    assert {page["outcome"] for page in pages} == {"ok"}
    robots = job.query("SELECT outcome, fetch_repaired FROM robots").to_pylist()
    assert robots == [{"outcome": "ok", "fetch_repaired": "line ends"}]
