"""`barkspider block`, `allow`, `unblock` and `rules`, `traps` and `pardon`: what a crawl leaves alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from barkspider.cli.control import AsJson, JobFolder
from barkspider.cli.resume import Ray, TrustSettings
from barkspider.cli.terminal import say, say_json
from barkspider.core.errors import JobError, UsageError
from barkspider.engine.control import ask
from barkspider.engine.folder import check_job

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help="example.org (a domain), host:www.example.org, *.www.example.org, a URL (* stands for any text), an address "
        "or a network such as 192.0.2.0/24, or re:PATTERN, a regular expression found anywhere in a URL.",
    ),
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the log.")]


def block(
    job: JobFolder,
    what: What,
    why: Why = "",
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Also list what is archived of it, and where, one JSON object a line."),
    ] = False,
    trust: TrustSettings = False,
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Fetch nothing more of a domain, host, URL, network or pattern. What waits of it is kept until `unblock`.

    Example: barkspider block jobs/mine example.org --why "they asked us to"
    """
    _tell(job, "block", what, why, trust, ray, json_, "nothing more of {} is fetched")
    if purge:
        _list_archived(job, what)
    return 0


def allow(
    job: JobFolder,
    what: What,
    why: Why = "",
    trust: TrustSettings = False,
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Fetch something though a rule blocks it; robots.txt and scope stand above.

    Example: barkspider allow jobs/mine https://example.org/press/*
    """
    _tell(job, "allow", what, why, trust, ray, json_, "{} may be fetched, whatever is blocked")
    return 0


def unblock(
    job: JobFolder,
    what: What,
    why: Why = "",
    trust: TrustSettings = False,
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Take a rule of `block` or `allow` back: what it has kept from being fetched comes up again.

    Example: barkspider unblock jobs/mine example.org
    """
    _tell(job, "unblock", what, why, trust, ray, json_, "the rule {} is taken back")
    return 0


def rules(job: JobFolder, json_: AsJson = False) -> int:
    """Show the rules that were given to a crawl one by one, and how many URLs each rule, or file, has blocked.

    Example: barkspider rules jobs/mine
    """
    found = _about(job)
    if json_:
        say_json({"job": str(job), "given": found["given"], "blocked": found["blocked"]})
        return 0
    given, blocked = found["given"], found["blocked"]
    for rule, kind in given.items():
        say(f"{kind} {rule}" + (f": {blocked[rule]:,} URLs" if rule in blocked else ""))
    for name in blocked:
        if name not in given:
            say(f"{name}: {blocked[name]:,} URLs")
    if not given and not blocked:
        say(f"no rule was given to the crawl in {job}, and none has blocked anything")
    return 0


def traps(job: JobFolder, json_: AsJson = False) -> int:
    """Show the places of sites that are endless and have nothing to say, and why they are taken for that.

    Example: barkspider traps jobs/mine
    """
    found = _about(job)["traps"]
    if json_:
        say_json({"job": str(job), "traps": found})
        return 0
    for trap in found:
        say(f"{trap['pattern']}: {trap['reason']}; {trap['held']:,} URLs were not fetched")
    if not found:
        say(f"no trap is known in {job}")
    return 0


def pardon(
    job: JobFolder,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="As `barkspider traps` shows it.")],
    why: Why = "",
    trust: TrustSettings = False,
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Take a trap for none: what was not fetched of it comes up again.

    Example: barkspider pardon jobs/mine "example.org/calendar?month&year"
    """
    known = _give(job, "pardon", pattern, why, trust, ray)
    if not known:
        raise UsageError(f"{job} has no trap {pattern}; `barkspider traps {job}` shows those that it has")
    if json_:
        say_json({"job": str(job), "pardon": pattern, "why": why})
    else:
        say(f"{job}: {pattern} is no trap any more")
    return 0


def _about(job: Any) -> dict[str, Any]:
    check_job(job)
    found = ask(job, "rules")
    if found is None:
        from barkspider.engine.rules import about_stopped  # loads the kernels

        found = about_stopped(job)
    return found


def _give(job: Any, kind: str, rule: str, why: str, trust: bool, ray: str | None) -> bool:
    """Let a crawl, or the journal of one that does not run, have a change; whether what it takes back was there."""
    if ray is not None:
        from barkspider.parallel.cluster.client import answer, connect

        connect(ray)
        return bool(answer(job, "rule", changes=[(kind, rule)], why=why)["known"])
    check_job(job)
    found = ask(job, "rule", changes=[(kind, rule)], why=why)
    if found is None:
        from barkspider.engine.rules import rule_stopped  # loads the kernels

        return rule_stopped(job, [(kind, rule)], trust=trust)
    return bool(found["known"])


def _tell(
    job: Any, kind: str, what: str, why: str, trust: bool, ray: str | None, as_json: bool, done: str
) -> None:
    from barkspider.core.settings import Settings
    from barkspider.engine.trust import read_settings
    from barkspider.storage.env import Env
    from barkspider.url import Domains
    from barkspider.url.lists import parse_rule

    if ray is None:
        check_job(job)
    settings = read_settings(Env(), job) if job.is_dir() else Settings()
    rule = str(parse_rule(what, Domains(settings.url.private_suffixes)))
    if not _give(job, kind, rule, why, trust, ray):
        raise UsageError(
            f"no rule {rule} was given to the crawl in {job}; `barkspider rules {job}` shows those that were"
        )
    if as_json:
        say_json({"job": str(job), kind: rule, "why": why})
    else:
        say(f"{job}: {done.format(rule)}")


def _list_archived(job: Any, what: str) -> None:
    from barkspider.engine import open_job
    from barkspider.engine.rules import archived

    ask(job, "write_tables")  # a crawl that runs still has rows in memory
    try:
        for row in archived(open_job(job), what):
            say_json(row)
    except JobError as error:
        raise UsageError(str(error)) from error
