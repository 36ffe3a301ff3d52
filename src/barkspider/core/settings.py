"""All settings of a crawl: small frozen values, each with its unit, default and reason.

`Settings` is what every part of a crawl receives; `barkspider.core.load` makes one from presets, TOML
files and `--set` options and writes one back. Those of the network are declared in `fetch_settings`, those of several
processes and of the store in `parallel_settings`. docs/settings.md lists them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barkspider.core.declared import duration, setting, size
from barkspider.core.fetch_settings import Agent, Cookies, Dns, Fetch, Network
from barkspider.core.parallel_settings import Parallel, Site, Store

__all__ = [
    "Agent",
    "Archive",
    "Budget",
    "Cookies",
    "Dns",
    "Fetch",
    "Limits",
    "Network",
    "Page",
    "Parallel",
    "Politeness",
    "Scope",
    "Settings",
    "Site",
    "Store",
    "Sydney",
    "Trace",
    "UrlRules",
]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs belong to the crawl. Empty lists mean no restriction."""

    level: str = setting(
        "domain",
        "How far from the seeds: page (the seeds alone), site (their hosts), domain (their pay-level domains), web",
        choices=("page", "site", "domain", "web"),
    )
    depth: int = setting(0, "Most links from a seed to a page; 0 means no limit", low=0, high=65535)
    depth_from: str = setting(
        "seed",
        "Where depth is counted from: the seed, or the page at which a site was entered",
        choices=("seed", "site"),
    )
    schemes: tuple[str, ...] = setting(("http", "https"), "Schemes to crawl", choices=("http", "https"))
    ports: tuple[int, ...] = setting(
        (), "Ports to crawl; empty means all but those of other protocols (25, 6379 …)", low=1, high=65535
    )
    include_hosts: tuple[str, ...] = setting((), "Host names, or *.name for a host and all below it")
    exclude_hosts: tuple[str, ...] = setting((), "As include_hosts; exclusion wins")
    include_domains: tuple[str, ...] = setting((), "Pay-level domains")
    exclude_domains: tuple[str, ...] = setting((), "Pay-level domains; exclusion wins")
    include_paths: tuple[str, ...] = setting(
        (), "Patterns of path and query as in robots.txt: a prefix, * for any text, $ for the end"
    )
    exclude_paths: tuple[str, ...] = setting((), "As include_paths; exclusion wins")
    include_regexes: tuple[str, ...] = setting(
        (), "Regular expressions (RE2), one of which is to be found in a URL"
    )
    exclude_regexes: tuple[str, ...] = setting((), "As include_regexes; exclusion wins")
    include_extensions: tuple[str, ...] = setting((), "Such as html or pdf; a path without one is always in")
    exclude_extensions: tuple[str, ...] = setting((), "Such as zip or mp4")
    external: str = setting(
        "deep",
        "What is followed of links to other sites: the link (deep), the home page of its site instead (home), or both",
        choices=("deep", "home", "both"),
    )
    duplicate_hosts: str = setting(
        "",
        "A file of lines `replica original`, as `duphosts -o` writes them: links to replicas count as links to their originals. "
        "Read at every start",
        harmless=("",),
    )
    stop_mirrors: bool = setting(
        False,
        "Stop a host whose home page, and one more document, are another host's: what is left of it is refused",
    )
    filter: str = setting(
        "",
        "A function of your own that says of a URL whether it is in scope, after all else: package.module:name, or the name of an "
        "entry point in barkspider.filters",
        harmless=("",),
    )
    sitemaps: str = setting(
        "never",
        "Whose sitemaps are read, as robots.txt names them: never, those of hosts of seeds, those of all hosts",
        choices=("never", "seeds", "all"),
    )


@dataclass(frozen=True, slots=True)
class Lists:
    """Files of what is left alone, and of what is not; watched while the crawl runs."""

    block: tuple[str, ...] = setting(
        (),
        "Files of what is not to be fetched: a domain, host, URL, network or re:PATTERN a line",
        harmless=((),),
    )
    allow: tuple[str, ...] = setting(
        (),
        "Files of what may be fetched though a rule blocks it; robots.txt and scope stand above",
        harmless=((),),
    )


@dataclass(frozen=True, slots=True)
class Traps:
    """Places without end that have nothing to say: they are found by what their pages add, not by limits."""

    detect: bool = setting(True, "Fetch no more of what repeats itself and leads to more of its kind alone")
    evidence: int = setting(48, "Pages in vain that make a pattern of a site a trap", low=8)


@dataclass(frozen=True, slots=True)
class UrlRules:
    """How URLs are normalised after WHATWG parsing (Viúva Negra, sections 4.3 and 4.5)."""

    drop_fragment: bool = setting(True, "Drop #fragment: it never reaches the server")
    drop_userinfo: bool = setting(True, "Drop user:password@: a crawler has no business with it")
    drop_index_names: bool = setting(
        False,
        "Drop a well-known last name such as index.html when there is no query (36% fewer duplicates on a national web). "
        "Off: links to the long form would lead nowhere in the archive",
    )
    index_names: tuple[str, ...] = setting(
        ("index.html", "index.htm", "index.shtml", "default.html", "default.htm"), "The well-known last names"
    )
    add_www: bool = setting(
        False,
        "Add www. to a bare pay-level domain of the second level, such as example.org. Off: it avoids 30% of duplicate "
        "hosts but loses the 4% of sites that exist only without it",
    )
    trim_listings: bool = setting(
        True, "Drop the query that re-orders an Apache directory listing (?N=D, ?C=M;O=A)"
    )
    drop_session_ids: bool = setting(True, "Drop session-id parameters with values of 8 characters or more")
    session_names: tuple[str, ...] = setting(
        ("phpsessid", "sid", "sessionid", "jsessionid"), "Names of session-id parameters, in any case"
    )
    max_length: int = setting(2048, "Longest URL in characters; longer ones are refused", low=16, high=65535)
    private_suffixes: bool = setting(
        False,
        "Count the private section of the public suffix list too: a.blogspot.com is then a domain of its own",
    )


@dataclass(frozen=True, slots=True)
class Politeness:
    """How gently hosts (names) and servers (addresses) are treated."""

    host_delay: float = duration("2s", "Pause between two requests to a host (τ_h of IRLbot)")
    server_delay: float = duration("1s", "Pause between two requests to a server (τ_s of IRLbot)")
    scale_by_budget: bool = setting(
        False,
        "Shorten both delays for domains with more than the base budget, in proportion, down to the floors",
    )
    host_delay_floor: float = duration(
        "1s", "Shortest host_delay that a budget leads to (τ_h^0 of IRLbot, without a figure there)"
    )
    server_delay_floor: float = duration(
        "100ms", "Shortest server_delay that budgets lead to (τ_s^0 of IRLbot, without a figure there)"
    )
    slow_factor: int = setting(
        2,
        "A server's pause is at least so many times what its answers take on average; 0 turns this off",
        low=0,
    )
    max_slow_delay: float = duration("30s", "Longest pause because of slow answers")
    obey_robots: bool = setting(True, "Obey robots.txt (RFC 9309)")
    robots_expiry: float = duration(
        "24h", "How long a robots.txt is trusted, unless its Cache-Control says less"
    )
    robots_min_expiry: float = duration(
        "1h", "How long a robots.txt is trusted at least, whatever its Cache-Control says"
    )
    robots_stale: float = duration(
        "7d", "How long after it was read an old robots.txt is used while a new one cannot be had"
    )
    max_crawl_delay: float = duration(
        "60s", "Longest Crawl-delay honoured; hosts that ask for more are not crawled"
    )
    max_retry_after: float = duration("24h", "Longest Retry-After honoured")
    max_back_off: float = duration(
        "5m",
        "Longest pause of a host in trouble: each trouble doubles host_delay, each good answer halves it",
    )
    retries: int = setting(2, "How often a temporary failure of a page is tried again", low=0, high=255)
    retry_delay: float = duration("1m", "Pause before the first retry; doubles with each")
    park_after: int = setting(
        5, "Troubles of a host, less its good answers since, after which it is left alone for a while", low=1
    )
    park_time: float = duration(
        "10m", "How long a failing host is left alone; doubles each time it fails again", low=0.001
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """When the crawl, or the crawl of one site, ends. 0 means no limit."""

    pages: int = setting(0, "Pages to fetch", low=0)
    bytes: int = size("0B", "Bytes to receive", low=0)
    time: float = duration("0s", "How long to crawl, counted anew when a job is resumed")
    site_urls: int = setting(0, "URLs taken from one host; a spider trap has more", low=0)
    domain_urls: int = setting(0, "URLs taken from one pay-level domain", low=0)
    address_urls: int = setting(
        0,
        "URLs taken from one server (an address), whatever their domains, by each process: for farms of cheap domains",
        low=0,
    )
    wildcard_hosts: int = setting(
        0,
        "Hosts of a domain whose DNS has an answer for any name, at the addresses of such answers; they share one pause, and hosts at "
        "the addresses of a top-level domain that has such answers are refused. 0: DNS is not probed",
        low=0,
    )
    site_duplicates: int = setting(
        0,
        "Pages of a host whose content was seen before, after which its links are no longer followed",
        low=0,
    )
    grace: float = duration("5s", "How long a stop waits for what is in flight")
    free_space: int = size(
        "200MB", "The crawl pauses while the disk of the job has less room than this", low=0
    )
    redirects: int = setting(10, "Redirects in a chain", low=0, high=255)
    page_links: int = setting(
        10_000,
        "Targets of links taken from one page, whatever their fragments; at most 16 times as many links are looked at",
        low=1,
    )
    page_link_bytes: int = size(
        "250KB",
        "Bytes of the URLs that the links of one page make, and of its requisites; the cut is recorded",
        low=1,
    )


@dataclass(frozen=True, slots=True)
class Sydney:
    """The limited-memory frontier (Castillo, Nelli, Panconesi)."""

    sample: int = setting(
        16, "t: new links taken from a page at a time; 0 takes all, which is breadth-first", low=0
    )
    queue_limit: int = setting(
        1_000_000, "Most URLs in P and pages in S together; links beyond are dropped and counted", low=1
    )
    secondary: bool = setting(
        True,
        "Keep the links left of a page in S; without it they are dropped and counted: P alone (section 3.1)",
    )
    refetch: bool = setting(False, "Fetch a page of S again for its remaining links instead of storing them")
    seen: str = setting(
        "memory",
        "Where the set of seen URLs lies: memory (8 to 26 bytes each) or disk (links wait for a merge then)",
        choices=("memory", "disk"),
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pages of a pay-level domain a frontier with budgets takes at a time (STAR of IRLbot)."""

    base: int = setting(10, "B_0: the budget of a domain nobody links to", low=1)
    top: int = setting(10_000, "The budget of the most linked domain", low=1)
    top_domains: int = setting(
        10_000, "K: how many domains get more than B_0; never more than 0.03% of those known", low=0
    )
    function: str = setting(
        "irlbot",
        "F: budget by reputation: irlbot, equal, popular, proportional, inverse, or your own as package.module:function",
        harmless=("irlbot", "equal", "popular", "proportional", "inverse"),
    )
    reputation: str = setting(
        "indegree",
        "What a domain's reputation is: how many domains link to it (indegree), or how many are two links away "
        "(supporters: harder to buy; in force as soon as the crawl is large enough, in-degree until then)",
        choices=("indegree", "supporters"),
    )
    merge_redirects: bool = setting(
        False,
        "Count links to a domain that only redirects to another one as links to that one (with reputation = "
        "supporters)",
    )
    max_queues: int = setting(
        128,
        "Most queues of URLs within budget; each takes two open files and up to 0.5 MB. 128 do for 80 billion pages",
        low=2,
        high=16384,
    )
    table: int = size(
        "256MiB",
        "Memory for left-over budgets, 26 bytes a domain that waits in a queue; others then wait for a re-scan",
        low=1024,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """What is taken from a page, and which pages are kept. Empty lists mean no restriction."""

    max_parse: int = size("8MB", "Bytes of a page that are read for links and text; the cut is recorded")
    forms: bool = setting(False, "Take the action of forms that use GET for a link")
    feeds: bool = setting(True, "Take the items of RSS and Atom for links")
    requisites: bool = setting(
        False,
        "Also fetch what a page needs to be shown (images, scripts, styles and what these need, fonts, media, frames), "
        "wherever it is: of scope only exclusions count for it, and robots.txt",
    )
    simhash: bool = setting(False, "Take a fingerprint of each page's text, for finding near-duplicates")
    max_text: int = size("1MB", "Most bytes of text extracted from a page")
    anchors: bool = setting(False, "Extract the texts of links")
    detect_language: bool = setting(False, "Tell the language of a page from its text")
    keep_types: tuple[str, ...] = setting(
        (), "Media types of pages to keep, such as text/html; text/* takes all of a kind"
    )
    keep_tlds: tuple[str, ...] = setting((), "Top-level domains of pages to keep, such as pt")
    keep_languages: tuple[str, ...] = setting(
        (),
        "Languages of pages to keep, such as pt; beside keep_tlds, a page elsewhere is kept when it is in one "
        "of them and linked from there. Without detect_language only what a page declares counts: one that declares "
        "none is rejected as language_undeclared",
    )
    keep_words: tuple[str, ...] = setting((), "Keep pages whose text has one of these words, in any case")
    classifier: str = setting(
        "",
        "A further judge of pages: package.module:name, or the name of an entry point in barkspider.classifiers",
        harmless=("",),
    )
    follow_rejected: bool = setting(True, "Follow the links of pages that are not kept")


@dataclass(frozen=True, slots=True)
class Archive:
    """What is kept."""

    warc_size: int = size("1GB", "A WARC file is closed and a new one begun at this size")
    compression: str = setting(
        "gzip",
        "How records are packed: gzip, which every tool reads, or zstd with a dictionary, which is smaller",
        choices=("gzip", "zstd"),
    )
    gzip_level: int = setting(1, "Level of gzip (ISA-L)", low=0, high=3)
    zstd_level: int = setting(3, "Level of zstd", low=1, high=19)
    sync_interval: float = duration(
        "10s",
        "Time between two syncs to disk; a power loss takes at most this much; 0 leaves it to the system",
    )
    recent_digests: int = setting(
        1_000_000,
        "Payloads in memory, 32 bytes each, before they are noted on disk to write a repeated one as a short revisit record; "
        "0 never does",
        low=0,
    )
    revisit_size: int = size("1KB", "Smallest payload that a revisit record may stand for", low=1)
    metadata: bool = setting(
        False, "Write a metadata record for each page too: how it was found, how it ended, its links"
    )
    links: bool = setting(True, "Keep the table of links")
    duplicates: bool = setting(True, "Find all pages of equal content when the crawl ends")
    table_memory: int = size(
        "8MB",
        "Rows of a table that wait in memory to be packed together, and lines of the index of an open WARC file; never more "
        "than a 64th of `memory`",
        low=100_000,
    )
    table_interval: float = duration("1m", "Longest time that rows of a table wait in memory", low=0.01)
    keep_local: bool = setting(
        True,
        "Keep complete WARC files on this machine's disk when the store has them; without a store they stay",
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """Which decisions about URLs are kept in the table `decisions`: to find out why a URL is not fetched."""

    sample: int = setting(
        0,
        "One URL in so many whose decisions are kept (refused, failed, put off, held back, dropped): 1 takes all, 0 none",
        low=0,
    )
    most: int = setting(1_000_000, "Most decisions that one run keeps, some 30 bytes each", low=0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a crawl is told. Frozen; made by `barkspider.core.load.load_settings`.

    >>> Settings().politeness.host_delay
    2.0
    """

    frontier: str = setting(
        "irlbot",
        "What orders the crawl: irlbot (URLs on disk, budgets by reputation), sydney (limited memory), or site (one site after "
        "the other, each as a whole)",
        choices=("irlbot", "sydney", "site"),
    )
    order: str = setting(
        "budget",
        "With irlbot, which of the URLs that may be fetched comes first: by the budgets of their domains (budget), or the one to "
        "which most links were found so far (backlinks)",
        choices=("budget", "backlinks"),
    )
    seed: int = setting(
        0,
        "Seed of URL keys and of random choices; 0 picks one at random when the job is made",
        low=0,
        high=2**63 - 1,
    )
    memory: int = size(
        "2GB",
        "Memory that a crawl takes above the 219 MB of the idle process, shared out among its parts",
        low=16_000_000,
    )
    disk: int = size(
        "0B",
        "Disk space for rows that wait to be checked against all that is known (the buckets of DRUM), shared out among "
        "the parts of a crawl; 0 takes a quarter of what is free at the time",
        low=0,
    )
    checkpoint: float = duration(
        "1m",
        "How often all that is queued is made safe; after a crash what came since is applied again",
        low=0.01,
    )
    agent: Agent = field(default_factory=Agent)
    scope: Scope = field(default_factory=Scope)
    lists: Lists = field(default_factory=Lists)
    traps: Traps = field(default_factory=Traps)
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
