"""`barkspider web`: the synthetic web by itself."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.lab.synthweb import Server, Web
    from barkspider.lab.synthweb.answer import AnyWeb

Authority = Annotated[
    Path | None, typer.Option(help="Where to write the certificate to trust; else a temporary file.")
]
GraphFile = Annotated[
    Path | None, typer.Option(help="Write a crawlable part as a graph (npz) instead of serving.")
]
UrlFile = Annotated[
    Path | None,
    typer.Option(
        help="The file for the graph's URLs, line by line; NAME.names.txt for NAME.npz if not given."
    ),
]
DomainGraph = Annotated[
    Path | None,
    typer.Option(
        help="Write the links between all domains as a graph (npz) instead of serving; names in NAME.names.txt, "
        "members of the link exchange in NAME.spam.txt."
    ),
]
Stored = Annotated[
    Path | None,
    typer.Option(
        "--from",
        help="Serve the graph in this file (npz) instead: pages at its URLs, or by their numbers. Of the options "
        "above, ports, servers, authority and log count.",
    ),
]


def web(
    pages: Annotated[int, typer.Option(help="Pages of the web, up to four billion.")] = 1_000_000,
    domains: Annotated[int, typer.Option(help="Domains; 0 derives them from the pages.")] = 0,
    servers: Annotated[int, typer.Option(help="Addresses that the hosts share; 0 derives them.")] = 0,
    links: Annotated[int, typer.Option(help="Links of a page, 10 to 500, in the mean on large sites.")] = 60,
    seed: Annotated[int, typer.Option(help="Another seed, another web.")] = 1,
    hazards: Annotated[str, typer.Option(help="all, none, or names such as calendar,slow.")] = "none",
    http_port: Annotated[int, typer.Option(help="Port of HTTP on all addresses; 0 picks one.")] = 0,
    https_port: Annotated[int, typer.Option(help="Port of HTTPS; 0 picks one, -1 serves none.")] = 0,
    dns_port: Annotated[int, typer.Option(help="Port of the name server at 127.0.0.1; 0 picks one.")] = 0,
    authority: Authority = None,
    log: Annotated[Path | None, typer.Option(help="A file to log every request to.")] = None,
    graph: GraphFile = None,
    urls: UrlFile = None,
    domain_graph: DomainGraph = None,
    stored: Stored = None,
    limit: Annotated[int, typer.Option(help="Pages of the graph; 0 means all that can be reached.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Serve the synthetic web on loopback until Ctrl-C, or write a part of it, or its domains, as a graph.

    The web is computed from a seed: any size costs the same. Only this machine can reach it.

    Example: barkspider web --pages 20000 --hazards spam_farm,calendar --log requests.tsv

    Example: barkspider web --links 10 --graph web.npz

    Example: barkspider web --from web.npz

    Example: barkspider web --pages 50000 --domains 5000 --hazards link_exchange --domain-graph domains.npz
    """
    from barkspider.lab.synthweb import Server, StoredWeb, Web, WebSpec, parse_hazards

    _check_choice(graph, urls, domain_graph, stored)
    if graph is not None and urls is None:
        urls = graph.with_suffix(".names.txt")
    _check_ports(http_port, https_port, dns_port)
    for file in (authority, log, graph, urls, domain_graph):
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"the folder of {file} does not exist; create it first")
    if stored is not None:
        served: AnyWeb = StoredWeb.load(stored, servers)
    else:
        spec = WebSpec(seed, pages, domains, servers, links, hazards=parse_hazards(hazards))
        served = whole = Web(spec)
        if graph is not None and urls is not None:
            _write_graph(whole, graph, urls, limit, as_json)
            return
        if domain_graph is not None:
            _write_domain_graph(whole, domain_graph, as_json)
            return
    with tempfile.TemporaryDirectory(prefix="synthweb-") as folder:
        pem = None if https_port < 0 else authority or Path(folder) / "authority.pem"
        server = Server(served, http_port, None if pem is None else https_port, dns_port, log, pem)
        _serve(server, as_json)


def _check_choice(
    graph: Path | None, urls: Path | None, domain_graph: Path | None, stored: Path | None
) -> None:
    """That one thing is asked for: a web to serve, or one of the graphs to write."""
    if stored is not None and (graph is not None or domain_graph is not None):
        raise UsageError("--from serves a graph that there is; --graph and --domain-graph write one")
    if graph is None and urls is not None:
        raise UsageError("--urls goes with --graph: one file for the links, one for the addresses")
    if graph is not None and domain_graph is not None:
        raise UsageError("--graph and --domain-graph are two graphs: write one after the other")
    if domain_graph is not None and domain_graph.suffix != ".npz":
        raise UsageError(f"{domain_graph} does not end in .npz, by which `rank` knows such a graph")


def _check_ports(http: int, https: int, dns: int) -> None:
    for name, port in (("--http-port", http), ("--dns-port", dns), ("--https-port", https)):
        if not (0 <= port <= 65_535 or (port == -1 and name == "--https-port")):
            raise UsageError(f"{name} is {port}; a port is 1 to 65535, or 0 to have one picked")


def _serve(server: Server, as_json: bool) -> None:
    import uvloop

    from barkspider.lab.synthweb.process import serve_until

    def watch(over: asyncio.Event) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, over.set)

    uvloop.run(serve_until(server, lambda started: _announce(started, as_json), watch))


def _announce(server: Server, as_json: bool) -> None:
    from barkspider.lab.synthweb.process import crawler_settings

    settings = crawler_settings(server.http_port, server.https_port, server.dns_port, server.authority)
    seeds = server.web.seeds(5)
    ports = {"http_port": server.http_port, "https_port": server.https_port, "dns_port": server.dns_port}
    if as_json:
        say_json({**ports, "seeds": seeds, "settings": settings})
        return
    say(f"{server.web.describe()}. Ctrl-C ends it.")
    say(f"HTTP port {server.http_port}, HTTPS port {server.https_port}, DNS 127.0.0.1:{server.dns_port}")
    say("Seeds: " + " ".join(seeds))
    options = " ".join(f"--set {name}={value}" for name, value in settings.items())
    say(f"Crawl it: barkspider crawl {seeds[0]} --scope web {options}")


def _write_graph(whole: Web, graph: Path, urls: Path, limit: int, as_json: bool) -> None:
    from rich.progress import Progress

    from barkspider.lab.synthweb import write_graph

    if limit < 0:
        raise UsageError(f"--limit is {limit}; it must be 0 (all) or more")
    with Progress(console=screen(error=True), disable=as_json) as bar:
        task = bar.add_task("links", total=limit or whole.spec.pages)
        pages, links = write_graph(
            whole, graph, urls, limit or None, progress=lambda done: bar.update(task, completed=done)
        )
    if as_json:
        say_json({"pages": pages, "links": links, "graph": str(graph), "urls": str(urls)})
    else:
        say(f"{pages:,} pages and {links:,} links in {graph}, addresses in {urls}")


def _write_domain_graph(whole: Web, graph: Path, as_json: bool) -> None:
    from barkspider.lab.synthweb import write_domain_graph

    names, spam = graph.with_suffix(".names.txt"), graph.with_suffix(".spam.txt")
    domains, links = write_domain_graph(whole, graph, names, spam)
    if as_json:
        say_json({"domains": domains, "links": links, "graph": str(graph), "names": str(names)})
    else:
        members = f", members of the link exchange in {spam}" if "link_exchange" in whole.hazards else ""
        say(f"{domains:,} domains and {links:,} links in {graph}, names in {names}{members}")
