"""All settings of a crawl: small frozen values, each with its unit, default and reason.

`Settings` is what every part of a crawl receives; `barkspider.core.load` makes one from presets, TOML
files and `--set` options and writes one back. docs/settings.md lists them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barkspider.core.units import parse_duration, parse_size


def _setting(default: Any, help: str, **constraints: Any) -> Any:  # noqa: A002
    """A field; no text about the settings shows one that is `secret`. If `harmless` values are given, others make the
    crawl load code or files, or speak to networks: the settings of a job do not decide on these alone."""
    shown, metadata = not constraints.get("secret"), {"help": help, **constraints}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, repr=shown, metadata=metadata)
    return field(default=default, repr=shown, metadata=metadata)


def _duration(text: str, help: str, low: float = 0.0) -> Any:  # noqa: A002
    return _setting(parse_duration(text), help, unit="duration", low=low)


def _size(text: str, help: str, low: int = 1000, high: int | None = None) -> Any:  # noqa: A002
    return _setting(parse_size(text), help, unit="size", low=low, high=high)


@dataclass(frozen=True, slots=True)
class Agent:
    """Who we say we are."""

    name: str = _setting(
        "barkspider", "Product name: sent in User-Agent, and what robots.txt groups are matched against"
    )
    contact: str = _setting(
        "", "A URL or e-mail address where site owners reach you; a public host is not crawled without one"
    )
    email: str = _setting("", "An e-mail address sent in From; when empty, the contact if it is one")


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs belong to the crawl. Empty lists mean no restriction."""

    level: str = _setting(
        "domain",
        "How far from the seeds: page (the seeds alone), site (their hosts), domain (their pay-level domains), web",
        choices=("page", "site", "domain", "web"),
    )
    depth: int = _setting(0, "Most links from a seed to a page; 0 means no limit", low=0, high=65535)
    depth_from: str = _setting(
        "seed",
        "Where depth is counted from: the seed, or the page at which a site was entered",
        choices=("seed", "site"),
    )
    schemes: tuple[str, ...] = _setting(("http", "https"), "Schemes to crawl", choices=("http", "https"))
    ports: tuple[int, ...] = _setting(
        (), "Ports to crawl; empty means all but those of other protocols (25, 6379 …)", low=1, high=65535
    )
    include_hosts: tuple[str, ...] = _setting((), "Host names, or *.name for a host and all below it")
    exclude_hosts: tuple[str, ...] = _setting((), "As include_hosts; exclusion wins")
    include_domains: tuple[str, ...] = _setting((), "Pay-level domains")
    exclude_domains: tuple[str, ...] = _setting((), "Pay-level domains; exclusion wins")
    include_paths: tuple[str, ...] = _setting(
        (), "Patterns of path and query as in robots.txt: a prefix, * for any text, $ for the end"
    )
    exclude_paths: tuple[str, ...] = _setting((), "As include_paths; exclusion wins")
    include_extensions: tuple[str, ...] = _setting((), "Such as html or pdf; a path without one is always in")
    exclude_extensions: tuple[str, ...] = _setting((), "Such as zip or mp4")
    sitemaps: str = _setting(
        "never",
        "Whose sitemaps are read, as robots.txt names them: never, those of hosts of seeds, those of all hosts",
        choices=("never", "seeds", "all"),
    )


@dataclass(frozen=True, slots=True)
class UrlRules:
    """How URLs are normalised after WHATWG parsing (Viúva Negra, sections 4.3 and 4.5)."""

    drop_fragment: bool = _setting(True, "Drop #fragment: it never reaches the server")
    drop_userinfo: bool = _setting(True, "Drop user:password@: a crawler has no business with it")
    drop_index_names: bool = _setting(
        False,
        "Drop a well-known last name such as index.html when there is no query (36% fewer duplicates on a national web). "
        "Off: links to the long form would lead nowhere in the archive",
    )
    index_names: tuple[str, ...] = _setting(
        ("index.html", "index.htm", "index.shtml", "default.html", "default.htm"), "The well-known last names"
    )
    add_www: bool = _setting(
        False,
        "Add www. to a bare pay-level domain of the second level, such as example.org. Off: it avoids 30% of duplicate "
        "hosts but loses the 4% of sites that exist only without it",
    )
    trim_listings: bool = _setting(
        True, "Drop the query that re-orders an Apache directory listing (?N=D, ?C=M;O=A)"
    )
    drop_session_ids: bool = _setting(True, "Drop session-id parameters with values of 8 characters or more")
    session_names: tuple[str, ...] = _setting(
        ("phpsessid", "sid", "sessionid", "jsessionid"), "Names of session-id parameters, in any case"
    )
    max_length: int = _setting(2048, "Longest URL in characters; longer ones are refused", low=16, high=65535)
    private_suffixes: bool = _setting(
        False,
        "Count the private section of the public suffix list too: a.blogspot.com is then a domain of its own",
    )


@dataclass(frozen=True, slots=True)
class Politeness:
    """How gently hosts (names) and servers (addresses) are treated."""

    host_delay: float = _duration("2s", "Pause between two requests to a host (τ_h of IRLbot)")
    server_delay: float = _duration("1s", "Pause between two requests to a server (τ_s of IRLbot)")
    scale_by_budget: bool = _setting(
        False,
        "Shorten both delays for domains with more than the base budget, in proportion, down to the floors",
    )
    host_delay_floor: float = _duration(
        "1s", "Shortest host_delay that a budget leads to (τ_h^0 of IRLbot, without a figure there)"
    )
    server_delay_floor: float = _duration(
        "100ms", "Shortest server_delay that budgets lead to (τ_s^0 of IRLbot, without a figure there)"
    )
    slow_factor: int = _setting(
        2,
        "A server's pause is at least so many times what its answers take on average; 0 turns this off",
        low=0,
    )
    max_slow_delay: float = _duration("30s", "Longest pause because of slow answers")
    obey_robots: bool = _setting(True, "Obey robots.txt (RFC 9309)")
    robots_expiry: float = _duration(
        "24h", "How long a robots.txt is trusted, unless its Cache-Control says less"
    )
    robots_min_expiry: float = _duration(
        "1h", "How long a robots.txt is trusted at least, whatever its Cache-Control says"
    )
    robots_stale: float = _duration(
        "7d", "How long after it was read an old robots.txt is used while a new one cannot be had"
    )
    max_crawl_delay: float = _duration(
        "60s", "Longest Crawl-delay honoured; hosts that ask for more are not crawled"
    )
    max_retry_after: float = _duration("24h", "Longest Retry-After honoured")
    max_back_off: float = _duration(
        "5m",
        "Longest pause of a host in trouble: each trouble doubles host_delay, each good answer halves it",
    )
    retries: int = _setting(2, "How often a temporary failure of a page is tried again", low=0, high=255)
    retry_delay: float = _duration("1m", "Pause before the first retry; doubles with each")
    park_after: int = _setting(
        5, "Troubles of a host, less its good answers since, after which it is left alone for a while", low=1
    )
    park_time: float = _duration(
        "10m", "How long a failing host is left alone; doubles each time it fails again", low=0.001
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """When the crawl, or the crawl of one site, ends. 0 means no limit."""

    pages: int = _setting(0, "Pages to fetch", low=0)
    bytes: int = _size("0B", "Bytes to receive", low=0)
    time: float = _duration("0s", "How long to crawl, counted anew when a job is resumed")
    site_urls: int = _setting(0, "URLs taken from one host; a spider trap has more", low=0)
    domain_urls: int = _setting(0, "URLs taken from one pay-level domain", low=0)
    site_duplicates: int = _setting(
        0,
        "Pages of a host whose content was seen before, after which its links are no longer followed",
        low=0,
    )
    grace: float = _duration("5s", "How long a stop waits for what is in flight")
    free_space: int = _size(
        "200MB", "The crawl pauses while the disk of the job has less room than this", low=0
    )
    redirects: int = _setting(10, "Redirects in a chain", low=0, high=255)
    page_links: int = _setting(
        10_000,
        "Targets of links taken from one page, whatever their fragments; at most 16 times as many links are looked at",
        low=1,
    )
    page_link_bytes: int = _size(
        "250KB",
        "Bytes of the URLs that the links of one page make, and of its requisites; the cut is recorded",
        low=1,
    )


@dataclass(frozen=True, slots=True)
class Fetch:
    """What one request may cost."""

    timeout: float = _duration("60s", "Whole fetch, from connecting to the last byte", low=0.01)
    connect_timeout: float = _duration("10s", "Connecting, with TLS", low=0.01)
    header_timeout: float = _duration("15s", "From the request to the end of the headers", low=0.01)
    parse_timeout: float = _duration(
        "200ms", "CPU time for the framing of one response: a million tiny chunks end here", low=0.001
    )
    min_rate: int = _size("500B", "Least bytes per second of a body, over each rate_window", low=0)
    rate_window: float = _duration("10s", "How long a body may be slower than min_rate", low=0.01)
    # A body is in memory as a whole, when it is fetched and when it is read back (`archive.reader.LARGEST`).
    max_size: int = _size(
        "2MB",
        "Bytes of a body as sent; the rest is cut off and the cut recorded; 250MB at most",
        high=250_000_000,
    )
    max_decoded: int = _size(
        "8MB", "Bytes of a body after its content encodings are taken off; 250MB at most", high=250_000_000
    )
    max_encodings: int = _setting(2, "Content encodings on top of each other", low=0, high=8)
    max_window: int = _size("8MiB", "Memory that a zstd frame may ask of its decoder")
    max_header: int = _size("64KiB", "Bytes of all headers of a response")
    max_headers: int = _setting(2000, "Headers of a response", low=1)
    max_trailers: int = _setting(128, "Headers after a chunked body", low=0)
    max_interim: int = _setting(10, "Interim (1xx) responses before the real one", low=0)
    encodings: tuple[str, ...] = _setting(
        ("gzip", "deflate", "br", "zstd"),
        "Content encodings to ask for; none asks for plain bodies",
        choices=("gzip", "deflate", "br", "zstd"),
    )
    headers: tuple[str, ...] = _setting(
        (),
        "Further headers for certain origins, as ORIGIN NAME: VALUE such as https://intranet.example X-Key: abc",
        secret=True,
    )
    logins: tuple[str, ...] = _setting(
        (),
        "Basic authentication for certain origins, as ORIGIN USER:PASSWORD such as https://intranet.example me:secret",
        secret=True,
    )
    types: tuple[str, ...] = _setting(
        (), "Media types wanted, such as text/html or text/*; others are left at the headers. Empty: all"
    )
    bandwidth: int = _size("0B", "Bytes per second of the whole crawl; 0 means no limit", low=0)
    bandwidth_hours: tuple[str, ...] = _setting(
        (), "Other limits for hours of the day (local time), as FROM-TO=SIZE such as 8-18=500KB"
    )
    in_flight: int = _setting(500, "Requests at the same time", low=1, high=100_000)
    keep_alive: float = _duration("5s", "How long an idle connection is kept for its host")
    idle_connections: int = _setting(1000, "Most idle connections kept", low=0)
    verify_tls: bool = _setting(True, "Refuse bad certificates")
    tls_authority: str = _setting(
        "", "A PEM file of further certificate authorities to trust", harmless=("",)
    )


@dataclass(frozen=True, slots=True)
class Dns:
    """Name resolution; never the blocking resolver of the operating system."""

    servers: tuple[str, ...] = _setting(
        (), "Name servers as address or address:port; empty means the system's", harmless=((),)
    )
    timeout: float = _duration(
        "5s",
        "Longest first try: shorter for a server that answers fast, doubled with each further try",
        low=0.01,
    )
    tries: int = _setting(3, "Tries before a name counts as unresolved", low=1, high=10)
    family: str = _setting(
        "prefer4",
        "Addresses to ask for: prefer4 (IPv6 where there is no IPv4), prefer6, 4 or 6 alone",
        choices=("prefer4", "prefer6", "4", "6"),
    )
    in_flight: int = _setting(200, "Names asked for at the same time; the others wait", low=1, high=10_000)
    cache_size: int = _setting(100_000, "Names remembered, the last used ones; about 70 MB when full", low=1)
    min_ttl: float = _duration("1m", "An answer is trusted at least this long", low=1.0)
    max_ttl: float = _duration("24h", "An answer is trusted at most this long", low=1.0)
    negative_ttl: float = _duration("10m", "How long a name that does not exist is not asked for again")
    failure_ttl: float = _duration("30s", "How long a name that could not be resolved is not asked for again")


@dataclass(frozen=True, slots=True)
class Network:
    """Which addresses may be contacted besides public ones."""

    allow: tuple[str, ...] = _setting(
        (), "Networks opened by hand, such as 127.0.0.0/8 or 10.1.0.0/16", harmless=((),)
    )
    ports: tuple[str, ...] = _setting(
        (), "Where a network really listens, as NETWORK:PORT=REAL such as 127.0.0.0/8:80=8080", harmless=((),)
    )
    proxy: str = _setting(
        "",
        "A proxy for all connections: http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ "
        "where it asks for them. Names are still resolved here, so that addresses can be judged; variables of "
        "the environment never count",
        secret=True,
        harmless=("",),
    )


@dataclass(frozen=True, slots=True)
class Cookies:
    """Cookies keep session ids out of URLs: 3.5% had one instead of 27% (Viúva Negra, section 4.5)."""

    enabled: bool = _setting(True, "Accept cookies and send them back to their site")
    file: str = _setting(
        "",
        "A cookies.txt (Netscape) of cookies to begin with, such as a browser's; read at every start",
        harmless=("",),
    )
    sites: int = _setting(50_000, "Pay-level domains whose cookies are remembered, the last used ones", low=1)
    memory: int = _size(
        "32MB",
        "Bytes of all cookies, in memory and in each checkpoint; the sites not used for longest go first",
    )
    per_site: int = _setting(20, "Most cookies of a site; the oldest go first", low=1)
    max_size: int = _size("4096B", "Bytes of the name and value of a cookie; a larger one is refused", low=1)
    site_size: int = _size(
        "8KiB", "Bytes of all cookies of a site, which is what most servers take; the oldest go first", low=1
    )
    set_per_response: int = _setting(50, "Set-Cookie headers looked at in a response", low=1)


@dataclass(frozen=True, slots=True)
class Sydney:
    """The limited-memory frontier (Castillo, Nelli, Panconesi)."""

    sample: int = _setting(
        16, "t: new links taken from a page at a time; 0 takes all, which is breadth-first", low=0
    )
    queue_limit: int = _setting(
        1_000_000, "Most URLs in P and pages in S together; links beyond are dropped and counted", low=1
    )
    secondary: bool = _setting(
        True,
        "Keep the links left of a page in S; without it they are dropped and counted: P alone (section 3.1)",
    )
    refetch: bool = _setting(False, "Fetch a page of S again for its remaining links instead of storing them")
    seen: str = _setting(
        "memory",
        "Where the set of seen URLs lies: memory (8 to 26 bytes each) or disk (links wait for a merge then)",
        choices=("memory", "disk"),
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pages of a pay-level domain a frontier with budgets takes at a time (STAR of IRLbot)."""

    base: int = _setting(10, "B_0: the budget of a domain nobody links to", low=1)
    top: int = _setting(10_000, "The budget of the most linked domain", low=1)
    top_domains: int = _setting(
        10_000, "K: how many domains get more than B_0; never more than 0.03% of those known", low=0
    )
    function: str = _setting(
        "irlbot",
        "F: budget by reputation: irlbot, equal, popular, proportional, inverse, or your own as package.module:function",
        harmless=("irlbot", "equal", "popular", "proportional", "inverse"),
    )
    reputation: str = _setting(
        "indegree",
        "What a domain's reputation is: how many domains link to it (indegree), or how many are two links away "
        "(supporters: harder to buy; in force as soon as the crawl is large enough, in-degree until then)",
        choices=("indegree", "supporters"),
    )
    merge_redirects: bool = _setting(
        False,
        "Count links to a domain that only redirects to another one as links to that one (with reputation = "
        "supporters)",
    )
    max_queues: int = _setting(
        128,
        "Most queues of URLs within budget; each takes two open files and up to 0.5 MB. 128 do for 80 billion pages",
        low=2,
        high=16384,
    )
    table: int = _size(
        "256MiB",
        "Memory for left-over budgets, 26 bytes a domain that waits in a queue; others then wait for a re-scan",
        low=1024,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """What is taken from a page, and which pages are kept. Empty lists mean no restriction."""

    max_parse: int = _size("8MB", "Bytes of a page that are read for links and text; the cut is recorded")
    forms: bool = _setting(False, "Take the action of forms that use GET for a link")
    feeds: bool = _setting(True, "Take the items of RSS and Atom for links")
    requisites: bool = _setting(
        False,
        "Also fetch what a page needs to be shown (images, scripts, styles and what these need, fonts, media, frames), "
        "wherever it is: of scope only exclusions count for it, and robots.txt",
    )
    simhash: bool = _setting(False, "Take a fingerprint of each page's text, for finding near-duplicates")
    max_text: int = _size("1MB", "Most bytes of text extracted from a page")
    anchors: bool = _setting(False, "Extract the texts of links")
    detect_language: bool = _setting(False, "Tell the language of a page from its text")
    keep_types: tuple[str, ...] = _setting(
        (), "Media types of pages to keep, such as text/html; text/* takes all of a kind"
    )
    keep_tlds: tuple[str, ...] = _setting((), "Top-level domains of pages to keep, such as pt")
    keep_languages: tuple[str, ...] = _setting(
        (),
        "Languages of pages to keep, such as pt; beside keep_tlds, a page elsewhere is kept when it is in one "
        "of them and linked from there. Without detect_language only what a page declares counts: one that declares "
        "none is rejected as language_undeclared",
    )
    keep_words: tuple[str, ...] = _setting((), "Keep pages whose text has one of these words, in any case")
    classifier: str = _setting(
        "",
        "A further judge of pages: package.module:name, or the name of an entry point in barkspider.classifiers",
        harmless=("",),
    )
    follow_rejected: bool = _setting(True, "Follow the links of pages that are not kept")


@dataclass(frozen=True, slots=True)
class Archive:
    """What is kept."""

    warc_size: int = _size("1GB", "A WARC file is closed and a new one begun at this size")
    compression: str = _setting(
        "gzip",
        "How records are packed: gzip, which every tool reads, or zstd with a dictionary, which is smaller",
        choices=("gzip", "zstd"),
    )
    gzip_level: int = _setting(1, "Level of gzip (ISA-L)", low=0, high=3)
    zstd_level: int = _setting(3, "Level of zstd", low=1, high=19)
    sync_interval: float = _duration(
        "10s",
        "Time between two syncs to disk; a power loss takes at most this much; 0 leaves it to the system",
    )
    recent_digests: int = _setting(
        1_000_000,
        "Payloads in memory, 32 bytes each, before they are noted on disk to write a repeated one as a short revisit record; "
        "0 never does",
        low=0,
    )
    revisit_size: int = _size("1KB", "Smallest payload that a revisit record may stand for", low=1)
    metadata: bool = _setting(
        False, "Write a metadata record for each page too: how it was found, how it ended, its links"
    )
    links: bool = _setting(True, "Keep the table of links")
    duplicates: bool = _setting(True, "Find all pages of equal content when the crawl ends")
    table_memory: int = _size(
        "8MB",
        "Rows of a table that wait in memory to be packed together, and lines of the index of an open WARC file; never more "
        "than a 64th of `memory`",
        low=100_000,
    )
    table_interval: float = _duration("1m", "Longest time that rows of a table wait in memory", low=0.01)
    keep_local: bool = _setting(
        True,
        "Keep complete WARC files on this machine's disk when the store has them; without a store they stay",
    )


@dataclass(frozen=True, slots=True)
class Parallel:
    """Several processes that divide a crawl among them (Parallel Crawlers, sections 2 and 3)."""

    processes: int = _setting(1, "Processes that divide the crawl", low=1, high=4096)
    part: int = _setting(0, "Which of them this is: set by `crawl --processes`", low=0, high=4095)
    here: tuple[int, ...] = _setting(
        (),
        "Those that run on this machine, such as 0,1; none means all. `exchange` carries what others send",
        low=0,
    )
    partition: str = _setting(
        "domain",
        "What a process has as a whole: a pay-level domain (domain), a host (site), nothing (url), the sites of a top-level "
        "domain (hierarchical, with weights), the hosts of a server (address), or what your own package.module:function says",
        harmless=("domain", "site", "url", "hierarchical", "address"),
    )
    weights: str = _setting(
        "",
        "With hierarchical, how many pages top-level domains have: a file of lines such as `de 300`, and `* 9` for all others, "
        "or the folder of an earlier crawl; read when the job is made",
    )
    mode: str = _setting(
        "exchange",
        "What becomes of links to pages of another process: they are sent to it (exchange), dropped (firewall), held back until "
        "own pages run out (cross-over), or followed as if they were its own (independent)",
        choices=("exchange", "firewall", "cross-over", "independent"),
    )
    replicate: str = _setting(
        "",
        "URLs that all processes know from the beginning and never send: a file of URLs, or JOB:10000 for those to which most "
        "pages of an earlier crawl link; read when the job is made",
    )
    batch: int = _setting(1_000, "Pages after which a process sends what it found for others", low=1)
    interval: float = _duration("10s", "Longest time that this waits to be sent", low=0.01)
    outbox: int = _size(
        "1GB",
        "Disk space for what others have not taken in yet; beyond it nothing is fetched until they have",
    )
    lease: float = _duration(
        "30s",
        "On a cluster: a part that has had no word of the overseer for so long stops, and another takes its place",
        low=1.0,
    )
    database: str = _setting(
        "",
        "With frontier = site, the PostgreSQL that has the sites, such as postgresql://user@host/name, without one it is a file of the job",
        secret=True,
        harmless=("",),
    )
    watchdog: float = _duration(
        "5m", "A process that has work and does nothing for so long is started anew", low=1.0
    )


@dataclass(frozen=True, slots=True)
class Site:
    """A crawl site by site, `frontier = site` (The Viúva Negra crawler, section 4)."""

    at_once: int = _setting(
        500, "Sites that a process crawls at once, so that their pauses do not leave it idle", low=1
    )
    lease: float = _duration(
        "5m",
        "For how long a process has a site unless it says that it goes on; of one that died others take the sites then",
        low=0.1,
    )
    tries: int = _setting(
        3, "Visits to a site that does not answer, the later ones behind all other sites", low=1
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Where copies of a crawl are kept, so that it outlives its machine."""

    url: str = _setting(
        "",
        "A folder, or any URL that fsspec knows, such as s3://bucket/crawl: every checkpoint is copied there",
        harmless=("",),
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """Which decisions about URLs are kept in the table `decisions`: to find out why a URL is not fetched."""

    sample: int = _setting(
        0,
        "One URL in so many whose decisions are kept (refused, failed, put off, held back, dropped): 1 takes all, 0 none",
        low=0,
    )
    most: int = _setting(1_000_000, "Most decisions that one run keeps, some 30 bytes each", low=0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a crawl is told. Frozen; made by `barkspider.core.load.load_settings`.

    >>> Settings().politeness.host_delay
    2.0
    """

    frontier: str = _setting(
        "irlbot",
        "What orders the crawl: irlbot (URLs on disk, budgets by reputation), sydney (limited memory), or site (one site after "
        "the other, each as a whole)",
        choices=("irlbot", "sydney", "site"),
    )
    order: str = _setting(
        "budget",
        "With irlbot, which of the URLs that may be fetched comes first: by the budgets of their domains (budget), or the one to "
        "which most links were found so far (backlinks)",
        choices=("budget", "backlinks"),
    )
    seed: int = _setting(
        0,
        "Seed of URL keys and of random choices; 0 picks one at random when the job is made",
        low=0,
        high=2**63 - 1,
    )
    memory: int = _size(
        "2GB",
        "Memory that a crawl takes above the 219 MB of the idle process, shared out among its parts",
        low=16_000_000,
    )
    disk: int = _size(
        "0B",
        "Disk space for rows that wait to be checked against all that is known (the buckets of DRUM), shared out among "
        "the parts of a crawl; 0 takes a quarter of what is free at the time",
        low=0,
    )
    checkpoint: float = _duration(
        "1m",
        "How often all that is queued is made safe; after a crash what came since is applied again",
        low=0.01,
    )
    agent: Agent = field(default_factory=Agent)
    scope: Scope = field(default_factory=Scope)
    url: UrlRules = field(default_factory=UrlRules)
    politeness: Politeness = field(default_factory=Politeness)
    limits: Limits = field(default_factory=Limits)
    fetch: Fetch = field(default_factory=Fetch)
    dns: Dns = field(default_factory=Dns)
    network: Network = field(default_factory=Network)
    cookies: Cookies = field(default_factory=Cookies)
    sydney: Sydney = field(default_factory=Sydney)
    budget: Budget = field(default_factory=Budget)
    page: Page = field(default_factory=Page)
    archive: Archive = field(default_factory=Archive)
    parallel: Parallel = field(default_factory=Parallel)
    site: Site = field(default_factory=Site)
    store: Store = field(default_factory=Store)
    trace: Trace = field(default_factory=Trace)
