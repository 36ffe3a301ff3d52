"""RFC 9309 by the letter, slowly, to compare ours with: `python -m tests.url.rfc9309 FOLDER` does so for real files.

Each file of FOLDER is a robots.txt, named by its host. URLs are made of its own rules, so that each is met where it
begins to match, just before and just beyond. What ours allows and the RFC forbids is printed; there should be nothing.
What ours forbids and the RFC allows is counted.

Where the grammar says nothing: of a name of an agent such as `Mozilla/5.0` the letters count that it begins with, as in
Google's parser, and every line that names an agent begins a group. A path may begin with `*`, as in the example of
section 5.1; a rule whose path is none says nothing, but is a rule, so that a name behind it begins a group.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from barkspider.core.errors import UrlError
from barkspider.url import RobotsRules, parse, split

_AGENT = re.compile(r"[ \t]*user-agent[ \t]*:[ \t]*([^#]*)", re.IGNORECASE)
_TOKEN = re.compile(r"\*(?=[ \t]|$)|[a-zA-Z_-]*")
_RULE = re.compile(r"[ \t]*(allow|disallow)[ \t]*:[ \t]*([^#]*)", re.IGNORECASE)
_PATH = re.compile(r"[/*]\S*")  # the grammar has no blanks within
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
_PIECE = re.compile(r"%[0-9a-fA-F]{2}|.", re.DOTALL)

_SIZE = 500 * 1024  # beyond that a crawler need not read (2.5)
_TRIED = 8  # rules of a file around which URLs are tried

Rules = list[tuple[bool, str]]


def rules_of(body: bytes, agent: str) -> Rules:
    """The rules of the group of an agent, or of that of all (2.2.1): pairs of "is it Allow" and a path."""
    groups: dict[str, Rules] = {}
    names, in_rules = list[str](), False
    text = body[:_SIZE].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    for line in re.split(r"\r\n|\r|\n", text):
        line = line.partition("#")[0]
        named, rule = _AGENT.fullmatch(line), _RULE.fullmatch(line)
        if named:
            names = [] if in_rules else names
            in_rules = False
            token = _TOKEN.match(named[1].strip())
            names.append(token[0].lower() if token else "")
            groups.setdefault(names[-1], [])
        elif rule:
            in_rules = True
            path = rule[2].strip()
            for name in names if _PATH.fullmatch(path) else ():
                groups[name].append((rule[1].lower() == "allow", path))
    return groups.get(agent.lower(), groups.get("*", []))


def with_folders(rules: Rules) -> Rules:
    """What Google's parser adds, and so do we: who allows `/x/index.html` allows `/x/`."""
    folders = [re.fullmatch(r"(.*/)index\.htm[^/]*", rule) for allow, rule in rules if allow]
    return rules + [(True, f"{folder[1]}$") for folder in folders if folder]


def allows(rules: Rules, target: str) -> bool:
    """Whether a path and query may be asked for (2.2.2): the longest rule counts, and Allow among equals."""
    if target == "/robots.txt":
        return True
    path, mark, query = target.partition("?")
    # In a query what is reserved is the same escaped or not; in a path `/` divides and `%2F` does not.
    whole = _spelled(path, _RESERVED) + mark + _spelled(query, frozenset())
    found = [(_length(rule), allow) for allow, rule in rules if _expression(rule).match(whole)]
    return max(found)[1] if found else True


@cache
def _length(rule: str) -> int:
    return len(_spelled(rule, _RESERVED))


def _spelled(text: str, kept: frozenset[str]) -> str:
    """Octets beyond ASCII escaped, the unreserved not; of the reserved those not in `kept` behind a NUL, which stands nowhere else."""
    return "".join(_octet(piece, kept) for piece in _PIECE.findall(text))


def _octet(piece: str, kept: frozenset[str]) -> str:
    letter = chr(int(piece[1:], 16)) if len(piece) == 3 else piece
    if letter in _UNRESERVED:
        return letter
    if letter in _RESERVED and not kept:
        return f"\0{letter}"
    if len(piece) == 3:
        return piece.upper()
    if letter.isascii():
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogateescape"))


@cache
def _expression(rule: str) -> re.Pattern[str]:
    """A rule as an expression: `*` is any text and `$` the end (2.2.3), their escapes are the characters.

    What stands between stars is looked for once, from where the last piece ended: another place further on fits no better.
    """
    head, *pieces = ("".join(map(_one, _PIECE.findall(piece))) for piece in rule.removesuffix("$").split("*"))
    last = [f".*{pieces.pop()}$" if pieces else "$"] if rule.endswith("$") else []
    return re.compile("".join([head, *(f"(?>.*?{piece})" for piece in pieces), *last]), re.DOTALL)


def _one(piece: str) -> str:
    """An octet of a rule as an expression."""
    octet = re.escape(_octet(piece, _RESERVED))
    letter = chr(int(piece[1:], 16)) if len(piece) == 3 else piece
    if letter in "*$":  # nothing is divided by these
        octet = f"(?:{re.escape(letter)}|%{ord(letter):02X})"
    return f"(?:{octet}|\0{re.escape(letter)})" if letter in _RESERVED else octet


def targets(rules: Rules) -> Iterator[str]:
    """Paths and queries of canonical URLs around each rule."""
    yield "/"
    for _, rule in rules:
        for star in ("", "x", "/x/y?z="):
            text = rule.removesuffix("$").replace("*", star)
            for each in (
                text,
                f"{text}x",
                f"{text}/x.html",
                text[:-1],
                f"{text}?a=b",
                text.rpartition("/")[0] + "/",
            ):
                try:
                    yield split(str(parse(f"http://a.example{each}"))).target
                except UrlError:
                    continue


def main(folder: str) -> None:
    """Compare every file of a folder."""
    files = urls = 0
    stricter, folders, looser = set[str](), set[str](), set[str]()
    for file in sorted(Path(folder).iterdir()):
        body = file.read_bytes()
        _length.cache_clear()
        _expression.cache_clear()
        mine, theirs = (
            RobotsRules.parse(body, "barkspider", f"http://{file.name}"),
            rules_of(body, "barkspider"),
        )
        files += 1
        for target in dict.fromkeys(targets(theirs[:: len(theirs) // _TRIED + 1])):
            urls += 1
            verdict = mine.allows(target)
            if verdict == allows(theirs, target):
                continue
            if not verdict:
                stricter.add(file.name)
            elif allows(with_folders(theirs), target):
                folders.add(file.name)
            elif file.name not in looser:
                looser.add(file.name)
                print(f"{file.name}: allows {target}")
    print(
        f"{files} files, {urls} URLs: less strict in {len(looser)} files, in {len(folders)} more for an index.html;"
    )
    print(f"stricter in {len(stricter)}: {' '.join(sorted(stricter))}")


if __name__ == "__main__":
    main(sys.argv[1])
