"""Settings of the network: who asks, what one request may cost, names, addresses, cookies."""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.core.declared import duration, setting, size


@dataclass(frozen=True, slots=True)
class Agent:
    """Who we say we are."""

    name: str = setting(
        "barkspider", "Product name: sent in User-Agent, and what robots.txt groups are matched against"
    )
    contact: str = setting(
        "", "A URL or e-mail address where site owners reach you; a public host is not crawled without one"
    )
    email: str = setting("", "An e-mail address sent in From; when empty, the contact if it is one")


@dataclass(frozen=True, slots=True)
class Fetch:
    """What one request may cost."""

    timeout: float = duration("60s", "Whole fetch, from connecting to the last byte", low=0.01)
    connect_timeout: float = duration("10s", "Connecting, with TLS", low=0.01)
    header_timeout: float = duration("15s", "From the request to the end of the headers", low=0.01)
    parse_timeout: float = duration(
        "200ms", "CPU time for the framing of one response: a million tiny chunks end here", low=0.001
    )
    min_rate: int = size("500B", "Least bytes per second of a body, over each rate_window", low=0)
    rate_window: float = duration("10s", "How long a body may be slower than min_rate", low=0.01)
    # A body is in memory as a whole, when it is fetched and when it is read back (`archive.reader.LARGEST`).
    max_size: int = size(
        "2MB",
        "Bytes of a body as sent; the rest is cut off and the cut recorded; 250MB at most",
        high=250_000_000,
    )
    max_decoded: int = size(
        "8MB", "Bytes of a body after its content encodings are taken off; 250MB at most", high=250_000_000
    )
    max_encodings: int = setting(2, "Content encodings on top of each other", low=0, high=8)
    max_window: int = size("8MiB", "Memory that a zstd frame may ask of its decoder")
    max_header: int = size("64KiB", "Bytes of all headers of a response")
    max_headers: int = setting(2000, "Headers of a response", low=1)
    max_trailers: int = setting(128, "Headers after a chunked body", low=0)
    max_interim: int = setting(10, "Interim (1xx) responses before the real one", low=0)
    encodings: tuple[str, ...] = setting(
        ("gzip", "deflate", "br", "zstd"),
        "Content encodings to ask for; none asks for plain bodies",
        choices=("gzip", "deflate", "br", "zstd"),
    )
    headers: tuple[str, ...] = setting(
        (),
        "Further headers for certain origins, as ORIGIN NAME: VALUE such as https://intranet.example X-Key: abc",
        secret=True,
    )
    logins: tuple[str, ...] = setting(
        (),
        "Basic authentication for certain origins, as ORIGIN USER:PASSWORD such as https://intranet.example me:secret",
        secret=True,
    )
    types: tuple[str, ...] = setting(
        (), "Media types wanted, such as text/html or text/*; others are left at the headers. Empty: all"
    )
    bandwidth: int = size("0B", "Bytes per second of the whole crawl; 0 means no limit", low=0)
    bandwidth_hours: tuple[str, ...] = setting(
        (), "Other limits for hours of the day (local time), as FROM-TO=SIZE such as 8-18=500KB"
    )
    in_flight: int = setting(500, "Requests at the same time", low=1, high=100_000)
    keep_alive: float = duration("5s", "How long an idle connection is kept for its host")
    idle_connections: int = setting(1000, "Most idle connections kept", low=0)
    verify_tls: bool = setting(True, "Refuse bad certificates")
    tls_authority: str = setting("", "A PEM file of further certificate authorities to trust", harmless=("",))


@dataclass(frozen=True, slots=True)
class Dns:
    """Name resolution; never the blocking resolver of the operating system."""

    servers: tuple[str, ...] = setting(
        (), "Name servers as address or address:port; empty means the system's", harmless=((),)
    )
    timeout: float = duration(
        "5s",
        "Longest first try: shorter for a server that answers fast, doubled with each further try",
        low=0.01,
    )
    tries: int = setting(3, "Tries before a name counts as unresolved", low=1, high=10)
    family: str = setting(
        "prefer4",
        "Addresses to ask for: prefer4 (IPv6 where there is no IPv4), prefer6, 4 or 6 alone",
        choices=("prefer4", "prefer6", "4", "6"),
    )
    in_flight: int = setting(200, "Names asked for at the same time; the others wait", low=1, high=10_000)
    cache_size: int = setting(100_000, "Names remembered, the last used ones; about 70 MB when full", low=1)
    min_ttl: float = duration("1m", "An answer is trusted at least this long", low=1.0)
    max_ttl: float = duration("24h", "An answer is trusted at most this long", low=1.0)
    negative_ttl: float = duration("10m", "How long a name that does not exist is not asked for again")
    failure_ttl: float = duration("30s", "How long a name that could not be resolved is not asked for again")


@dataclass(frozen=True, slots=True)
class Network:
    """Which addresses may be contacted besides public ones."""

    allow: tuple[str, ...] = setting(
        (), "Networks opened by hand, such as 127.0.0.0/8 or 10.1.0.0/16", harmless=((),)
    )
    ports: tuple[str, ...] = setting(
        (), "Where a network really listens, as NETWORK:PORT=REAL such as 127.0.0.0/8:80=8080", harmless=((),)
    )
    proxy: str = setting(
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

    enabled: bool = setting(True, "Accept cookies and send them back to their site")
    file: str = setting(
        "",
        "A cookies.txt (Netscape) of cookies to begin with, such as a browser's; read at every start",
        harmless=("",),
    )
    sites: int = setting(50_000, "Pay-level domains whose cookies are remembered, the last used ones", low=1)
    memory: int = size(
        "32MB",
        "Bytes of all cookies, in memory and in each checkpoint; the sites not used for longest go first",
    )
    per_site: int = setting(20, "Most cookies of a site; the oldest go first", low=1)
    max_size: int = size("4096B", "Bytes of the name and value of a cookie; a larger one is refused", low=1)
    site_size: int = size(
        "8KiB", "Bytes of all cookies of a site, which is what most servers take; the oldest go first", low=1
    )
    set_per_response: int = setting(50, "Set-Cookie headers looked at in a response", low=1)
