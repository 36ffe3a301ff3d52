"""Before a crawl: read the seeds, refuse at once what would be refused for every request, and ask for open files."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from barkspider.core.errors import UrlError, UsageError
from barkspider.core.settings import Settings
from barkspider.engine.replicas import read_replicas
from barkspider.engine.spare import SPARE
from barkspider.fetch import Fetcher
from barkspider.fetch.cookies_file import read_cookies
from barkspider.frontier.ownership import load_function
from barkspider.model.budgets import Budgets
from barkspider.page import Classifier
from barkspider.url import Domains, Normaliser, ScopeRules, is_address, split

# Open files beside connections: of DRUMs, Q_W, the archive, the journal, the libraries, and two for each queue of BEAST.
# Seen: 65 with 8 queues and everything switched on. Where more queues leave no room, connections are shed (`spare`).
_OTHER_FILES, _FILES_A_QUEUE = 96 + SPARE, 2
_LEAST_CONNECTIONS = 32
_CHECKED = 20  # seed hosts looked up: enough to meet a mistake, few enough not to wait for


def canonical_seeds(
    settings: Settings, texts: Iterable[tuple[str, str]], left_out: Callable[[str], None] | None = None
) -> list[str]:
    """Canonical URLs from texts, each once; `UsageError` for none, or for one that is no URL to crawl.

    With each text comes where it was found, which is put before the complaint. If `left_out` is given, complaints
    about texts that were found somewhere go there, and these texts are left out.

    >>> canonical_seeds(Settings(), [("HTTP://Example.org", ""), ("http://example.org/#top", "")])
    ['http://example.org/']
    """
    normalise = Normaliser(settings.url, Domains(settings.url.private_suffixes))
    found: dict[str, None] = {}
    for text, where in texts:
        try:
            found[normalise(text)] = None
        except UrlError as error:
            complaint = f"{where}{text[:200]!r} is not a URL to crawl ({error.reason}); write it like https://example.org/"
            if left_out is None or not where:
                raise UsageError(complaint) from error
            left_out(complaint)
    if not found:
        raise UsageError("nothing to crawl: give a URL, or a file of them with --seeds")
    return list(found)


def _network(host: str) -> str:
    if host.startswith("["):
        return f"{host.strip('[]')}/128"
    return "127.0.0.0/8" if not is_address(host) or host.startswith("127.") else f"{host}/32"


async def check_hosts(settings: Settings, seeds: Sequence[str]) -> None:
    """Raise `UsageError` when a seed's host is public without a contact, or private without permission."""
    async with aclosing(Fetcher(settings)) as fetcher:
        hosts = list(dict.fromkeys(split(seed).host for seed in seeds))[:_CHECKED]
        answers = await asyncio.gather(*map(fetcher.resolve, hosts))
    for host, found in zip(hosts, answers, strict=True):
        if found.error == "no_contact":
            raise UsageError(
                f"{host} is a public host: say who you are first, for example with "
                "--set agent.contact=https://example.org/about-my-crawl or an e-mail address"
            )
        if found.error == "refused_address":
            raise UsageError(
                f"{host} is on a loopback or private network; if you mean it, open that network with "
                f"--allow-network, for example --allow-network {_network(host)}"
            )


def check_settings(settings: Settings) -> None:
    """Raise `SettingsError` for what shows only when it is used: files and functions that cannot be loaded, patterns,
    names; `UsageError` where the system allows too few open files."""
    read_cookies(settings.cookies.file)
    Classifier(settings.page)
    Budgets(settings.budget)
    if ":" in settings.parallel.partition:
        load_function(settings.parallel.partition)
    domains = Domains(settings.url.private_suffixes)
    ScopeRules(settings.scope, domains, [])
    read_replicas(settings, domains)
    fit_open_files(settings)


def fit_open_files(settings: Settings) -> Settings:
    """Ask the system for as many open files as there may be connections, and for some for everything else; where it
    does not allow so many, settings with fewer connections.

    Files come first: a connection less is a little slower, but a crawl whose disk has no file left ends.
    """
    fetch = settings.fetch
    queues = _FILES_A_QUEUE * settings.budget.max_queues if settings.frontier == "irlbot" else 0
    wanted = _OTHER_FILES + queues + fetch.in_flight + fetch.idle_connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = wanted
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    room = (wanted if soft == resource.RLIM_INFINITY else soft) - _OTHER_FILES
    if room < _LEAST_CONNECTIONS:
        raise UsageError(
            f"the system allows {soft:,} open files, and a crawl needs {_OTHER_FILES + _LEAST_CONNECTIONS:,} at least: "
            "raise the limit with `ulimit -n`"
        )
    if room >= fetch.in_flight + fetch.idle_connections:
        return settings
    in_flight = min(fetch.in_flight, room * 3 // 4)
    return replace(
        settings,
        fetch=replace(
            fetch, in_flight=in_flight, idle_connections=min(fetch.idle_connections, room - in_flight)
        ),
    )
