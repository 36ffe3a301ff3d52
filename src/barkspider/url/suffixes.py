"""The public suffix list, read once: below which names registrars sell names (publicsuffix.org, "Algorithm").

The list comes with the package `publicsuffixlist`; its own functions look up each name in nine ways.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from publicsuffixlist import PSLFILE

from barkspider.url.parse import parse

# What rules say of a name: it is a suffix; so are all names one label below; it is none although the one above says so.
_SUFFIX, _ABOVE, _EXCEPTION = 1, 2, 4
_MARKS = {"*": ("*.", _ABOVE), "!": ("!", _EXCEPTION)}  # by the first sign of a rule


def registered(name: str, private: bool = False) -> str | None:
    """The part of a name that is one label longer than its public suffix; None if it is a suffix itself, or no name.

    A suffix that no rule knows has one label.

    >>> registered("www.example.co.uk"), registered("a.b.example.ck"), registered("www.ck"), registered("co.uk")
    ('example.co.uk', 'b.example.ck', 'www.ck', None)
    """
    if not name or name[0] == "." or name[-1] == "." or ".." in name:
        return None
    rules, most = _rules(private)
    rest = name if name.count(".") < most else ".".join(name.split(".")[-most:])
    longer = longest = ""  # by one label, by two
    while True:
        rule = rules.get(rest, 0)
        if rule & _EXCEPTION:
            return rest
        if rule & _ABOVE and longer:
            return longest or None
        dot = rest.find(".")
        if rule or dot < 0:
            return longer or None
        longest, longer, rest = longer, rest, rest[dot + 1 :]


@cache
def _rules(private: bool) -> tuple[dict[str, int], int]:
    """What rules say, by name, and one more than the most labels of a name."""
    rules: dict[str, int] = {}
    most = 0
    for rule, of_icann in _lines():
        if of_icann or private:
            mark, meaning = _MARKS.get(rule[0], ("", _SUFFIX))
            name = rule.removeprefix(mark)
            rules[name] = rules.get(name, 0) | meaning
            most = max(most, rule.count(".") + 1)
    return rules, most + 1


@cache
def _lines() -> list[tuple[str, bool]]:
    """All rules, as names are written in URLs, and whether they stand in the section of ICANN."""
    lines, of_icann = [], False
    for line in Path(PSLFILE).read_text(encoding="utf-8").splitlines():
        if line.startswith("//"):
            of_icann = (of_icann or "===BEGIN ICANN" in line) and "===END ICANN" not in line
        elif line and not line.isspace():
            rule = line.split()[0].lower()
            lines.append((rule if rule.isascii() else _ascii(rule), of_icann))
    return lines


def _ascii(rule: str) -> str:
    mark = "!" if rule[0] == "!" else ""
    return mark + (parse(f"http://{rule[len(mark) :]}/").host_str or "")
