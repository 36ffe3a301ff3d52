"""`barkspider fetch`: one fetch, explained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.terminal import printable, put, say, say_json
from barkspider.core.load import load_settings, replace

if TYPE_CHECKING:
    from barkspider.engine.explain import Explanation


_VERDICTS = {
    "": "allowed",
    "robots": "forbidden",
    "robots_unreachable": "cannot be had, so all is forbidden for now",
    "crawl_delay": "asks for longer pauses than politeness.max_crawl_delay, so nothing is fetched",
}


def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="What to fetch.")],
    preset: Annotated[str, typer.Option(help="default, irlbot or viuva-negra.")] = "default",
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated.")
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="Open a loopback or private network; may be repeated."),
    ] = None,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Fetch even what robots.txt forbids: for your own sites.")
    ] = False,
    body: Annotated[
        bool, typer.Option("--body", help="Write the body to the output, everything else to the errors.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Fetch one URL as a crawl would, and show every step: name, robots.txt, request, answer, outcome.

    Redirects are shown, not followed. The exit code is 0 when there was an answer, 1 when there was none.

    Example: barkspider fetch https://example.org/ --set agent.contact=me@example.org
    """
    settings = load_settings(preset, config, set_ or [])
    if allow_network:
        settings = replace(settings, {"network.allow": [*settings.network.allow, *allow_network]})
    if ignore_robots:
        settings = replace(settings, {"politeness.obey_robots": False})
    import uvloop

    from barkspider.engine.explain import explain
    from barkspider.engine.preflight import canonical_seeds, check_hosts

    target = canonical_seeds(settings, [(url, "")])[0]

    async def run() -> Explanation:
        await check_hosts(settings, [target])
        return await explain(target, settings)

    found = uvloop.run(run())
    if json_:
        say_json(found.as_dict())
    else:
        say("\n".join(map(printable, _lines(found))), error=body)
        if body and found.response is not None:
            put(found.response.body)
    return 0 if found.response is not None and found.response.exchange.status else 1


def _lines(found: Explanation) -> list[str]:
    known = f", good for {found.resolution.ttl:,.0f} s" if found.resolution.addresses else ""
    lines = [
        f"URL        {found.url}",
        f"name       {', '.join(found.resolution.addresses) or found.resolution.error}"
        f" (in {_milliseconds(found.resolving)}{known})",
    ]
    if found.robots is not None:
        verdict = _VERDICTS[found.robots.refusal]
        delay = f", Crawl-delay {found.robots.crawl_delay:g} s" if found.robots.crawl_delay else ""
        lines.append(f"robots     {verdict}{delay} ({found.robots.url}: {found.robots.outcome})")
        if found.robots.detail:
            lines.append(f"           {found.robots.detail}")
        lines += [f"sitemap    {each}" for each in found.robots.sitemaps]
    if found.response is not None:
        exchange = found.response.exchange
        lines += [f"> {line}" for line in found.request.splitlines() if line]
        lines += [f"< {line}" for line in exchange.head.decode("latin-1").splitlines() if line]
        phases = " + ".join(
            f"{name} {_milliseconds(value)}" for name, value in exchange.timing._asdict().items()
        )
        lines.append(f"time       {phases}")
        size = len(exchange.head) + len(exchange.payload)
        lines.append(f"bytes      {size:,} received, {len(found.response.body):,} in the body")
        if not found.response.decoded:
            lines.append("encoding   could not be taken off whole")
        if found.redirect:
            lines.append(f"leads to   {found.redirect}")
        if exchange.detail:
            lines.append(f"detail     {exchange.detail}")
    elif found.robots is not None:
        lines.append("           not asked for; --ignore-robots asks all the same")
    return [*lines, f"outcome    {found.outcome}"]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
