"""The texts of robots.txt, one kind a host.

What each kind allows is known apart from its text: `model.is_allowed` decides from section and number of a
page. A crawler that reads the texts must come to the same result.

| kind | text | closed to barkspider |
| --- | --- | --- |
| no_robots | 404 | nothing |
| empty, allow_all, html, crawl_delay, tie | nothing that forbids, or an Allow as long as the Disallow | nothing |
| sections, bom, crlf, comments, nonsense, redirected | one section, in awkward writing | the section |
| other_agents | everything for another agent, one section for all | the section |
| own_group | everything for all, one section for barkspider | the section |
| merged | two groups for barkspider | both sections |
| wildcard | pages whose number ends with 7, by `*` and `$` | these |
| allow_wins | one section but for numbers ending with 3 | the rest of the section |
"""

from __future__ import annotations

import numpy as np

from barkspider.lab.synthweb import model
from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, redirect
from barkspider.lab.synthweb.model import Tables
from barkspider.lab.synthweb.names import SECTIONS_PER_SITE
from barkspider.lab.synthweb.text import ENDINGS, style_of, write_section

KINDS = (
    "no_robots", "empty", "allow_all", "sections", "other_agents", "own_group", "wildcard", "allow_wins",
    "crawl_delay", "bom", "crlf", "comments", "nonsense", "html", "redirected", "merged", "tie",
)  # fmt: skip
REDIRECT_TARGET = "/rules/robots-current.txt"
# The group that is closed to everyone but barkspider, and the agent that others' groups name.
OTHER_AGENT = "googlebot"


def kind_of(tables: Tables, host: int) -> str:
    """The name of the kind of robots.txt that a host has."""
    return KINDS[model.robots_kind(tables, host)]


def answer(tables: Tables, host: int, path: str, crawl_delay: float) -> Answer:
    """What a host answers for `path`, which is /robots.txt or where that redirects to."""
    kind = kind_of(tables, host)
    if kind == "no_robots" or (path == REDIRECT_TARGET and kind != "redirected"):
        return NOT_FOUND
    if kind == "redirected" and path != REDIRECT_TARGET:
        return redirect(REDIRECT_TARGET, 301)
    if kind == "html":
        return Answer(
            200, b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>Hello</body></html>\n"
        )
    return Answer(200, _text(tables, host, kind, crawl_delay), "text/plain")


def is_allowed(tables: Tables, page: int, agent: str = "barkspider") -> bool:
    """Whether robots.txt lets an agent fetch a page; agents without a group of their own are all alike."""
    if agent.lower() == "barkspider":
        return bool(model.is_allowed(tables, page))
    host = model.host_of(tables, page)
    kind = kind_of(tables, host)
    if kind == "own_group" or (kind == "other_agents" and agent.lower() == OTHER_AGENT):
        return False
    if kind == "merged":
        return True
    return bool(model.is_allowed(tables, page))


def _text(tables: Tables, host: int, kind: str, crawl_delay: float) -> bytes:
    closed = _section(tables, host, 0)
    ending = ENDINGS[style_of(tables, host)]
    everyone = f"User-agent: *\nDisallow: {closed}\n"
    texts = {
        "empty": "",
        "allow_all": "User-agent: *\nDisallow:\n",
        "sections": everyone,
        "other_agents": f"User-agent: {OTHER_AGENT}\nUser-agent: slurp\nDisallow: /\n\n{everyone}",
        "own_group": f"User-agent: *\nDisallow: /\n\nUser-agent: BarkSpider\nDisallow: {closed}\n",
        "wildcard": f"User-agent: *\nDisallow: /*7{ending}$\n",
        "allow_wins": f"User-agent: *\nAllow: {closed}*3{ending}$\nDisallow: {closed}\n",
        "crawl_delay": f"User-agent: *\nCrawl-delay: {crawl_delay:g}\nDisallow:\n",
        "bom": "\ufeff" + everyone,
        "crlf": everyone.replace("\n", "\r\n"),
        "comments": f"# our rules\n\nUser-agent: * # everyone\n# not this one\n  Disallow :\t{closed}  # closed\n#Disallow: /\n",
        "nonsense": f"Disallow: /\nthis is not a rule\n: /\n\x00\x01\n{everyone}Noindex: /\nSitemap:\nDisallow\n",
        "redirected": everyone,
        "merged": (
            f"User-agent: barkspider\nDisallow: {closed}\n\nUser-agent: *\nDisallow:\n\n"
            f"User-agent: barkspider\nDisallow: {_section(tables, host, 1)}\n"
        ),
        "tie": f"User-agent: *\nDisallow: {closed}\nAllow: {closed}\n",
    }
    return texts[kind].encode()


def _section(tables: Tables, host: int, after: int) -> str:
    out = np.empty(64, np.uint8)
    number = (model.closed_section(tables, host) + after) % SECTIONS_PER_SITE
    return f"/{bytes(out[: write_section(tables, host, number, out, 0)]).decode()}/"
