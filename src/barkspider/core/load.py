"""Settings from presets, TOML files and `--set` options, and back into the job.

Later sources win: defaults, then the preset, then the file, then `--set`. An unknown name is refused
with the nearest valid one, a value of the wrong kind with what would be right.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import tomli_w

from barkspider.core.credentials import parse_header, parse_login
from barkspider.core.errors import SettingsError
from barkspider.core.settings import Settings
from barkspider.core.units import format_duration, format_size, parse_duration, parse_size

# Names that end like this are no HTML; IRLbot drops links to such before anything else (section 7.1). What programs are
# called that make pages (php, asp, cgi, dll, pl …) is not among them, nor is what may be either (xml, com).
_NOT_HTML = {
    "pictures": "bmp gif ico jpe jpeg jpg png psd svg tif tiff webp avif heic",
    "sound": "aac aif aiff flac m4a mid midi mp3 oga ogg opus ra ram wav wma",
    "films": "3gp asf avi flv m4v mkv mov mp4 mpe mpeg mpg ogv rm swf webm wmv",
    "documents": "csv doc docx epub mobi odp ods odt pdf pps ppt pptx ps rtf tex txt xls xlsx",
    "archives": "7z apk bin bz2 cab deb dmg exe gz img iso jar msi rar rpm sit tar tgz torrent xpi xz z zip zst",
    "parts of pages": "css eot js json mjs otf ttf woff woff2 wasm map",
    "feeds": "atom rdf rss",
}
# What Viúva Negra keeps: others are left at their headers, and what turns out to be another is not kept.
_NEGRA_TYPES = ["text/*", "application/xhtml+xml", "application/pdf", "application/msword"]
PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Someone who crawls a few sites or a few thousand: the defaults of `Settings`.
    "default": {},
    # The whole web from one server (IRLbot, sections 5 to 7).
    "irlbot": {
        "frontier": "irlbot",
        "scope.level": "web",
        "scope.exclude_extensions": sorted(" ".join(_NOT_HTML.values()).split()),
        "politeness.host_delay": "40s",
        "politeness.server_delay": "1s",
        "politeness.scale_by_budget": True,
        "budget.base": 10,
        "budget.top": 10_000,
        "budget.top_domains": 10_000,
        "url.drop_index_names": True,
    },
    # A national web (Viúva Negra, section 5 and Table VI).
    "viuva-negra": {
        "scope.level": "web",
        "scope.depth": 5,
        "scope.depth_from": "site",
        "politeness.host_delay": "2s",
        "limits.site_urls": 5_000,
        "limits.site_duplicates": 10,
        "fetch.timeout": "60s",
        "fetch.max_size": "2MB",
        "url.max_length": 200,
        "url.add_www": True,
        "url.drop_index_names": True,
        "fetch.types": _NEGRA_TYPES,
        "page.keep_types": _NEGRA_TYPES,
        "page.follow_rejected": False,
    },
}


def load_settings(
    preset: str = "default",
    file: Path | None = None,
    options: Iterable[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from a preset, a TOML file, `a.b=c` options, and overrides by dotted name, in this order.

    >>> load_settings("irlbot", options=["politeness.host_delay=20s"]).politeness.host_delay
    20.0
    """
    if preset not in PRESETS:
        raise SettingsError(f"unknown preset {preset!r}{_nearest(preset, PRESETS)}")
    values = dict(PRESETS[preset])
    if file is not None:
        values.update(_values(_read_file(file), str(file)))
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise SettingsError(f"--set {option!r} has no value; write it like politeness.host_delay=5s")
        replace(
            Settings(), {name.strip(): _Text(text.strip())}
        )  # a wrong one is refused even if a later one wins
        values[name.strip()] = _Text(text.strip())
    values.update(overrides or {})
    return _complete(values)


def parse_settings(text: str, name: str) -> Settings:
    """Settings from the text of a TOML file of this name.

    >>> parse_settings("seed = 7", "my.toml").seed
    7
    """
    return _complete(_values(text, name))


def _complete(values: Mapping[str, Any]) -> Settings:
    settings = replace(Settings(), values)
    if settings.budget.merge_redirects and settings.budget.reputation != "supporters":
        raise SettingsError("budget.merge_redirects works with budget.reputation = supporters only: set both")
    if settings.order == "backlinks" and settings.frontier != "irlbot":
        raise SettingsError("order = backlinks works with frontier = irlbot only: set both, or neither")
    if settings.frontier == "site":
        settings = _by_sites(settings)
    if settings.parallel.database and settings.frontier != "site":
        raise SettingsError("parallel.database works with frontier = site only: set both, or neither")
    return settings


def _by_sites(settings: Settings) -> Settings:
    """The settings of a crawl site by site: its processes take what they find on their sites, and send each other nothing."""
    parallel, whole = settings.parallel, Settings()
    if settings.limits.domain_urls:
        raise SettingsError(
            "limits.domain_urls is for frontier = irlbot or sydney: with site, set limits.site_urls"
        )
    if settings.store.url:
        raise SettingsError("store.url is for frontier = irlbot or sydney: leave it out with site")
    if parallel.mode not in (whole.parallel.mode, _ALONE) or parallel.partition != whole.parallel.partition:
        raise SettingsError(
            "with frontier = site processes take sites as they can: leave out parallel.mode and parallel.partition"
        )
    if parallel.here or parallel.replicate:
        raise SettingsError(
            "parallel.here and parallel.replicate are for frontier = irlbot or sydney: leave them out"
        )
    return dataclasses.replace(settings, parallel=dataclasses.replace(parallel, mode=_ALONE))


_ALONE = "independent"  # a mode in which a process follows what it finds, and takes turns at hosts too
_PARTITIONS = ("domain", "site", "url", "hierarchical", "address")
# What may be another in a job that goes on: it shapes neither keys nor files.
_CHANGEABLE = (
    "agent",
    "scope",
    "lists",
    "traps",
    "politeness",
    "limits",
    "fetch",
    "dns",
    "network",
    "cookies",
    "page",
    "disk",
    "checkpoint",
    "parallel.batch",
    "parallel.here",
    "parallel.interval",
    "parallel.outbox",
    "parallel.lease",
    "parallel.watchdog",
    "site",
    "archive.keep_local",
    "store",
)


def change_settings(settings: Settings, options: Iterable[str]) -> Settings:
    """Settings of a job that goes on, changed by `a.b=c` options where that can be.

    >>> change_settings(Settings(), ["limits.pages=7"]).limits.pages
    7
    >>> change_settings(Settings(), ["seed=7"])
    Traceback (most recent call last):
        ...
    barkspider.core.errors.SettingsError: seed cannot be changed in a job that has begun
    """
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip()
        if not equals:
            raise SettingsError(f"--set {option!r} has no value; write it like politeness.host_delay=5s")
        changed = replace(settings, {name: _Text(text.strip())})
        if not {name, name.partition(".")[0]} & {*_CHANGEABLE} and changed != settings:
            raise SettingsError(f"{name} cannot be changed in a job that has begun")
        settings = changed
    return settings


def replace(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """A copy with some settings changed, given by dotted name.

    >>> replace(Settings(), {"sydney.sample": 8}).sydney.sample
    8
    """
    fields = _fields()
    changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in fields:
            raise SettingsError(f"unknown setting {name!r}{_nearest(name, fields)}")
        section, _, key = name.rpartition(".")
        changes.setdefault(section, {})[key] = _convert(name, *fields[name], value)
    top = changes.pop("", {})
    for section, keys in changes.items():
        top[section] = dataclasses.replace(getattr(settings, section), **keys)
    return _check(dataclasses.replace(settings, **top))


def dump_settings(settings: Settings) -> str:
    """Every setting in force as TOML, with units; `load_settings` reads it back unchanged."""
    document: dict[str, Any] = {}
    for name, (_, field) in _fields().items():
        section, _, key = name.rpartition(".")
        value = getattr(getattr(settings, section) if section else settings, key)
        table = document.setdefault(section, {}) if section else document
        table[key] = _as_toml(value, field.metadata.get("unit"))
    return tomli_w.dumps(document)


def reaching(settings: Settings) -> list[str]:
    """The settings in force that reach beyond a job: they load code or files, or open networks.

    >>> reaching(Settings()), reaching(load_settings(options=["page.classifier=mine:judge"]))
    ([], ['page.classifier'])
    """
    found = []
    for name, (_, field) in _fields().items():
        section, _, key = name.rpartition(".")
        harmless = field.metadata.get("harmless")
        if harmless is not None and getattr(getattr(settings, section), key) not in harmless:
            found.append(name)
    return found


def describe_settings(settings: Settings | None = None) -> list[tuple[str, str, str]]:
    """Name, value and meaning of every setting, for people: of those in force, or of the defaults. What is secret is not
    told.

    >>> describe_settings()[0][0]
    'frontier'
    >>> own = load_settings(options=["network.proxy=http://me:hush@127.0.0.1:1/"])
    >>> [value for name, value, _ in describe_settings(own) if name == "network.proxy"]
    ['(not shown)']
    """
    defaults = tomllib.loads(dump_settings(settings or Settings()))
    rows = []
    for name, (_, field) in _fields().items():
        value: Any = defaults
        for part in name.split("."):
            value = value[part]
        text = tomli_w.dumps({"x": value}, multiline_strings=False).partition("=")[2]
        shown = " ".join(text.split()).replace("[ ", "[").replace(", ]", "]")
        if field.metadata.get("secret") and value:
            shown = "(not shown)"
        rows.append((name, shown, field.metadata["help"]))
    return rows


class _Text(str):
    """A value typed on the command line: its kind is decided by the setting it is for."""


def _fields() -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """Every leaf setting by dotted name, with its type."""
    found: dict[str, tuple[Any, dataclasses.Field[Any]]] = {}
    hints = get_type_hints(Settings)
    for field in dataclasses.fields(Settings):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            inner = get_type_hints(kind)
            found |= {f"{field.name}.{f.name}": (inner[f.name], f) for f in dataclasses.fields(kind)}
        else:
            found[field.name] = (kind, field)
    return found


def _read_file(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"cannot read settings file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from error


def _values(text: str, name: str) -> dict[str, Any]:
    """The settings that a text of TOML has, by dotted name."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{name} is not valid TOML: {error}") from error
    values: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            values |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            values[key] = value
    return values


def _convert(name: str, kind: Any, field: dataclasses.Field[Any], value: Any) -> Any:
    if kind in (tuple[str, ...], tuple[int, ...]):
        item = str if kind == tuple[str, ...] else int
        if isinstance(value, _Text):
            value = [_Text(part.strip()) for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            shown = "this" if field.metadata.get("secret") else repr(value)
            raise SettingsError(f"{name} takes a list, not {shown}")
        return tuple(_convert_one(name, item, field, part) for part in value)
    return _convert_one(name, kind, field, value)


def _convert_one(name: str, kind: Any, field: dataclasses.Field[Any], value: Any) -> Any:
    unit = field.metadata.get("unit")
    try:
        if unit is not None:
            if value == 0 and type(value) is int:
                value = "0"
            if not isinstance(value, str):
                raise SettingsError(
                    f"{value!r} has no unit; write it like {'40s' if unit == 'duration' else '2MB'}"
                )
            result: Any = parse_duration(value) if unit == "duration" else parse_size(value)
        elif isinstance(value, _Text) and kind is bool:
            if value.lower() not in ("true", "false"):
                raise SettingsError(f"{str(value)!r} is neither true nor false")
            result = value.lower() == "true"
        elif isinstance(value, _Text) and kind is int:
            if not re.fullmatch(r"-?\d[\d_]*", value):
                raise SettingsError(f"{str(value)!r} is not a whole number")
            result = int(value)
        elif kind is str and isinstance(value, str):
            result = str(value)
        elif type(value) is kind:
            result = value
        else:
            wanted = {bool: "true or false", int: "a whole number", str: "a text"}[kind]
            shown = "this" if field.metadata.get("secret") else repr(value)
            raise SettingsError(f"takes {wanted}, not {shown}")
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from error
    choices, low, high = (field.metadata.get(key) for key in ("choices", "low", "high"))
    if kind is int and high is None:
        high = 2**62  # more does not fit the arrays that it ends up in
    if kind is str and not result.isprintable():
        shown = "it" if field.metadata.get("secret") else repr(result)
        raise SettingsError(f"{name}: {shown} has characters that cannot be printed")
    if choices and result not in choices:
        raise SettingsError(f"{name}: {result!r} is not one of {', '.join(choices)}")
    if (low is not None and result < low) or (high is not None and result > high):
        raise SettingsError(
            f"{name}: {value} is out of range ({low} to {high if high is not None else 'any'})"
        )
    return result


def _check(settings: Settings) -> Settings:
    """Refuse what single values cannot show to be wrong."""
    try:
        for network in settings.network.allow:
            parse_network(network)
        for rule in settings.network.ports:
            parse_port_rule(rule)
    except SettingsError as error:
        raise SettingsError(f"network: {error}") from error
    if settings.parallel.partition not in _PARTITIONS and ":" not in settings.parallel.partition:
        raise SettingsError(
            f"parallel.partition {settings.parallel.partition!r} is unknown: give {', '.join(_PARTITIONS)} or "
            "package.module:function"
        )
    if settings.parallel.partition == "address" and settings.parallel.mode != "exchange":
        raise SettingsError(
            "parallel.partition = address needs processes that tell each other whose a host is: set parallel.mode=exchange"
        )
    for kind in settings.fetch.types:
        if not re.fullmatch(r"[!-~]+/[!-~]+", kind):
            raise SettingsError(f"fetch.types: {kind!r} is no media type; write text/html or text/*")
    for hours in settings.fetch.bandwidth_hours:
        parse_hours(hours)
    for header in settings.fetch.headers:
        parse_header(header)
    for login in settings.fetch.logins:
        parse_login(login)
    for server in settings.dns.servers:
        _check_name_server(server)
    if not settings.scope.schemes:
        raise SettingsError("scope.schemes: name http, https or both; without one there is nothing to crawl")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", settings.agent.name):
        raise SettingsError("agent.name: use letters, digits, - and _ only, as robots.txt can name no other")
    for name, text in (("contact", settings.agent.contact), ("email", settings.agent.email)):
        if not re.fullmatch(r"[\x20-\x7e]*", text):
            raise SettingsError(f"agent.{name}: use printable ASCII only, it is sent in a header")
    return settings


def _check_name_server(text: str) -> None:
    address, port = text, "53"
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
    try:
        ipaddress.ip_address(address)
        if not 0 < int(port) < 65536:
            raise ValueError(port)
    except ValueError as error:
        raise SettingsError(
            f"dns.servers: write {text!r} like 9.9.9.9, 127.0.0.1:5353 or [::1]:53"
        ) from error


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """A network such as `127.0.0.0/8`; host bits are refused as a likely slip.

    >>> parse_network("127.0.0.0/8").num_addresses
    16777216
    """
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise SettingsError(f"{text!r} is not a network; write it like 127.0.0.0/8 or 10.1.2.3/32") from error


def parse_port_rule(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int, int]:
    """Network, port in URLs and port really contacted, from `NETWORK:PORT=REAL`.

    >>> parse_port_rule("127.0.0.0/8:80=8080")[1:]
    (80, 8080)
    """
    match = re.fullmatch(r"(.+):(\d{1,5})=(\d{1,5})", text)
    if match is None or not (0 < int(match[2]) < 65536 and 0 < int(match[3]) < 65536):
        raise SettingsError(f"{text!r} is not a port rule; write it like 127.0.0.0/8:80=8080")
    return parse_network(match[1]), int(match[2]), int(match[3])


def parse_hours(text: str) -> tuple[int, int, int]:
    """First hour, the hour after the last, and bytes per second, from `FROM-TO=SIZE`.

    >>> parse_hours("8-18=500KB"), parse_hours("22-6=0B")
    ((8, 18, 500000), (22, 6, 0))
    """
    match = re.fullmatch(r"(\d{1,2})-(\d{1,2})=(.+)", text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 24 or int(match[1]) == int(match[2]):
        raise SettingsError(
            f"fetch.bandwidth_hours: {text!r} is no limit for hours; write it like 8-18=500KB"
        )
    return int(match[1]), int(match[2]), parse_size(match[3])


def _as_toml(value: Any, unit: str | None) -> Any:
    if unit == "duration":
        return format_duration(value)
    if unit == "size":
        return format_size(value)
    return list(value) if isinstance(value, tuple) else value


def _nearest(name: str, names: Iterable[str]) -> str:
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not close:  # perhaps only the section is missing or wrong
        ends = {known_name.rpartition(".")[2]: known_name for known_name in known}
        close = [
            ends[end] for end in difflib.get_close_matches(name.rpartition(".")[2], ends, n=1, cutoff=0.6)
        ]
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known)[:8])} …"
