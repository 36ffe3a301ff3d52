"""robots.txt: every verdict of Google's published parser, and what real files do wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barkspider.url import ALLOW_ALL, DISALLOW_ALL, PathPattern, RobotsRules
from barkspider.url.patterns import comparable, escape

CASES = Path(__file__).parents[2].parent / "shared" / "data" / "robots" / "google_robots_cases.json"
# Verdicts decided against, by the name of Google's test, with the reason. There are none.
DECIDED_AGAINST: dict[str, str] = {}


def google(section: str) -> list[Any]:
    if not CASES.exists():
        pytest.skip("the cases of google/robotstxt are not here")
    cases: list[Any] = json.loads(CASES.read_text())[section]
    return cases


def target_of(url: str) -> str:
    """Path and query of a URL text, by the reading of Google's cases: nothing at all means `/`."""
    rest = re.sub(r"^(?:[a-z]+:)?//", "", url).partition("#")[0]
    start = re.search(r"[/?]", rest)
    target = rest[start.start() :] if start else "/"
    return target if target.startswith("/") else f"/{target}"


def test_the_reading_of_urls_is_that_of_the_cases() -> None:
    for url, target in google("path_params_query"):
        assert target_of(url) == target


def test_every_verdict() -> None:
    cases = google("allowed")
    assert len(cases) == 145
    wrong = [
        case
        for case in cases
        if RobotsRules.parse(case["robots"].encode(), case["ua"]).allows(target_of(case["url"]))
        != case["allowed"]
        and case["test"] not in DECIDED_AGAINST
    ]
    assert wrong == []


def test_escapes_are_normalised_as_in_the_cases() -> None:
    for pattern, expected in google("maybe_escape"):
        assert escape(pattern) == expected


def test_line_ends_marks_and_sitemaps_of_the_cases() -> None:
    for case in google("parse_reports"):
        robots = case["robots"]
        body = robots["t"].encode() if "t" in robots else robots["latin1"].encode("latin-1")
        if "sitemap" in case:
            assert RobotsRules.parse(body, "foo").sitemaps == (case["sitemap"],)
        elif case["test"] == "ID_LinesNumbersAreCountedCorrectly":
            assert not RobotsRules.parse(body, "bar").allows("/x")
        else:
            # Disallowing everything else shows whether both lines were understood.
            rules = RobotsRules.parse(body + b"Disallow: /\n", "foo")
            both = not rules.allows("/x") and rules.allows("/AnyValue")
            assert both == (case["valid_directives"] == 2)


def rules(text: str, agent: str = "barkspider", origin: str = "http://example.com") -> RobotsRules:
    return RobotsRules.parse(text.encode(), agent, origin)


def test_constants() -> None:
    assert ALLOW_ALL.allows("/x")
    assert not DISALLOW_ALL.allows("/x")
    assert DISALLOW_ALL.allows("/robots.txt")


def test_groups_of_the_same_agent_are_merged() -> None:
    found = rules(
        "User-agent: barkspider\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUser-agent: BarkSpider/2.1\nDisallow: /b\n"
    )
    assert [found.allows(target) for target in ("/a", "/b", "/c")] == [False, False, True]


def test_an_empty_group_of_ours_beats_the_general_one() -> None:
    assert rules("User-agent: *\nDisallow: /\nUser-agent: barkspider\nDisallow:\n").allows("/x")


def test_a_group_is_ours_by_the_whole_name() -> None:
    text = "User-agent: bark\nAllow: /a\nUser-agent: Bark-Spider\nDisallow: /b\nUser-agent: *\nDisallow: /\n"
    assert [rules(text, "bark-spider").allows(f"/{x}") for x in "abc"] == [True, False, True]
    for other in ("bark-beetle", "barkeeper", "bark-spider-news"):
        assert not rules(text, other).allows("/a")


@pytest.mark.parametrize(
    "line",
    [
        "Dissallow: /x",
        "disalow:/x",
        "Disallow /x",
        " DISALLOW : /x # why",
        "Disallow:\t/x\x0b",
        "Disallow: /x*",
        "Disallow: x",
        "Disallow: /x /z",
        "Disallow: /z\t/x",
        "Disallow: http://example.com/x",
        "Disallow: HTTP://Example.com:80/x/",
        "Disallows: /x",
        "Dis-allow: /x",
    ],
)
def test_slips_are_read_as_meant(line: str) -> None:
    found = rules(f"User agent: *\n{line}\n")
    assert not found.allows("/x/y")
    assert found.allows("/y")


@pytest.mark.parametrize(
    ("url", "origin", "closes"),
    [
        ("https://example.com/", "https://example.com", "/y"),
        ("https://example.com", "https://example.com", "/y"),
        ("https://EXAMPLE.com:443/x", "https://example.com", "/x"),
        ("http://example.com:8080/x", "http://example.com:8080", "/x"),
        ("http://user@example.com?q=", "http://example.com", "/?q=1"),
        ("https://other.example/", "https://example.com", None),
        ("http://example.com/", "https://example.com", None),
        ("http://example.com:8080/", "http://example.com", None),
        ("https://*.example.com/", "https://example.com", None),
        ("https://[/", "https://example.com", None),
        ("https://example.com/", "", None),
        ("https://", "", None),
    ],
)
def test_a_whole_url_closes_only_what_it_names(url: str, origin: str, closes: str | None) -> None:
    found = rules(f"User-agent: *\nDisallow: {url}\n", origin=origin)
    assert [found.allows(target) for target in ("/y", "/x", "/?q=1")] == [
        closes is None or (closes != "/y" and closes != target) for target in ("/y", "/x", "/?q=1")
    ]


def test_a_path_with_a_space_is_one_path() -> None:
    found = rules("User_agent: *\nDisallow: /my files/\n")
    assert [found.allows(target) for target in ("/my%20files/a", "/my", "/files/")] == [False, True, True]


@pytest.mark.parametrize("line", ["Allow: x", "Allow: /z /x", "Allow: http://example.com/x", "Alow: /x"])
def test_a_slip_is_never_read_as_a_permission(line: str) -> None:
    assert not rules(f"User-agent: *\nDisallow: /\n{line}\n").allows("/x")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_markup_is_no_rules(mark: str) -> None:
    page = mark + "\n <!DOCTYPE html><html><pre>\nUser-agent: *\nDisallow: /\n</pre>"
    assert rules(page).allows("/x")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_line_end_and_the_byte_order_mark(end: str, mark: str) -> None:
    found = rules(mark + end.join(["User-agent: *", "Disallow: /a", "Allow: /a/b", "Crawl-delay: 3"]))
    assert [found.allows(target) for target in ("/a", "/a/b", "/c")] == [False, True, True]
    assert found.crawl_delay == 3.0


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_obeyed(coding: str) -> None:
    text = "\ufeffUser-agent: *\r\nDisallow: /a\r\nDisallow: /ツ\r\nCrawl-delay: 3\r\n"
    found = RobotsRules.parse(text.encode(coding), "barkspider")
    assert [found.allows(target) for target in ("/a", "/%E3%83%84", "/c")] == [False, False, True]
    assert found.crawl_delay == 3.0


def test_of_utf_16_too_only_whole_lines_of_the_first_500_kib_count() -> None:
    filler = "Disallow: /a\n" * 25_000
    text = f"\ufeffUser-agent: *\n{filler[: 256_000 - len('Disallow: /') - 16]}\nDisallow: /private\nDisallow: /b\n"
    assert text.encode("utf-16-le")[: 500 * 1024].endswith("Disallow: /".encode("utf-16-le"))
    found = RobotsRules.parse(text.encode("utf-16-le"), "barkspider")
    assert [found.allows(target) for target in ("/a", "/b", "/c")] == [False, True, True]


def test_sitemaps_are_kept_as_written_and_few_and_short_enough() -> None:
    text = (
        "Sitemap: https://example.com/a.xml#x\nUser-agent: other\nDisallow: /\nsite-map: /b.xml\nSitemap:\n"
    )
    assert rules(text).sitemaps == ("https://example.com/a.xml", "/b.xml")
    many = "".join(f"Sitemap: /{number}\n" for number in range(5_000))
    assert rules(many).sitemaps == tuple(f"/{number}" for number in range(100))
    assert rules(f"Sitemap: /{'x' * 2047}\nSitemap: /{'x' * 2048}").sitemaps == ("/" + "x" * 2047,)


def test_files_that_say_nothing_share_one_object() -> None:
    assert rules("User-agent: *\nDisallow:\n") is ALLOW_ALL
    assert rules("Sitemap: /a.xml") is not ALLOW_ALL


def test_crawl_delay() -> None:
    text = "User-agent: barkspider\nCrawl-delay: {}\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 9\n"
    assert rules(text.format("2.5")).crawl_delay == 2.5
    assert rules(text.format("2.5"), "other").crawl_delay == 9
    for nonsense in ("", "soon", "-1", "nan", "inf"):
        assert rules(text.format(nonsense)).crawl_delay is None


def test_only_the_first_500_kib_count_and_no_line_is_cut_in_two() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    filler = "#" + "x" * 99 + "\n"
    room = 500 * 1024 - len(head)
    text = head + filler * (room // len(filler))
    text += "#" * (500 * 1024 - len(text) - len("\nDisallow: /")) + "\nDisallow: /private\nDisallow: /b\n"
    found = rules(text)
    assert [found.allows(target) for target in ("/a", "/b", "/c", "/private")] == [False, True, True, True]


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b"\x00" * 100, b"\xef", b":\n:::\nuser-agent\n", b"\r\r\n\n\x85"]
)
def test_garbage_is_no_rules(body: bytes) -> None:
    found = RobotsRules.parse(body, "barkspider")
    assert found.allows("/x")
    assert found.crawl_delay is None


def test_bytes_that_are_no_utf8_match_their_escapes() -> None:
    found = RobotsRules.parse(b"User-agent: *\nDisallow: /caf\xe9\n", "barkspider")
    assert not found.allows("/caf%e9")


# Escapes of `*`, `$` and `~`, an ordinary one, and what is none.
_SIGNS = ["a", "b", "/", "$", "%", "~", "%2A", "%2a", "%24", "%7e", "%aB"]
_PATTERN = st.lists(st.sampled_from([*_SIGNS, "*"]), max_size=10).map("".join)
_TARGET = st.lists(st.sampled_from(_SIGNS), max_size=12).map(lambda signs: "/" + "".join(signs))


def as_expression(pattern: str) -> re.Pattern[str]:
    """The reference twin: the same pattern as a regular expression."""
    anchored = pattern.endswith("$")
    pieces = (pattern[:-1] if anchored else pattern).split("*")
    body = ".*".join(re.escape(re.sub("%([0-9A-Fa-f]{2})", as_compared, piece)) for piece in pieces)
    return re.compile(body + (r"\Z" if anchored else ""), re.S)


def as_compared(found: re.Match[str]) -> str:
    return {"2A": "*", "24": "$", "7E": "~"}.get(found[1].upper(), found[0].upper())


@given(_PATTERN, _TARGET)
def test_patterns_match_as_expressions_do(pattern: str, target: str) -> None:
    target = comparable(target)
    assert PathPattern(pattern).matches(target) == bool(as_expression(pattern).match(target))


@example(
    pairs=[(False, "/"), (False, "aa"), (True, "*")], target="/"
)  # a rule that is longer than the target
@given(st.lists(st.tuples(st.booleans(), _PATTERN.filter(bool)), max_size=8), _TARGET)
def test_rules_decide_as_the_slow_reading_does(pairs: list[tuple[bool, str]], target: str) -> None:
    compared = comparable(target)
    matching = [
        (len(comparable(text)), allow) for allow, text in pairs if PathPattern(text).matches(compared)
    ]
    assert RobotsRules(pairs).allows(target) == (max(matching)[1] if matching else True)


def test_no_pattern_tries_again_what_failed() -> None:
    pattern = PathPattern("/" + "*a" * 2000 + "*b$")  # a backtracking matcher would not live to see the end
    assert not pattern.matches("/" + "a" * 20_000)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that are compared with a URL."""
    found: list[str] = []
    matches = PathPattern.matches

    def note(pattern: PathPattern, target: str) -> bool:
        found.append(pattern.text)
        return matches(pattern, target)

    monkeypatch.setattr(PathPattern, "matches", note)
    return found


def test_rules_with_more_stars_than_a_file_may_have_close_what_begins_as_they_do(tried: list[str]) -> None:
    lines = "".join(f"Disallow: /b/{'*a' * 245}{number}\n" for number in range(1000))
    found = rules("User-agent: *\nDisallow: /*c\n" + lines)
    verdicts = [found.allows(target) for target in ("/b/x", "/b/" + "a" * 300, "/a", "/c")]
    assert verdicts == [False, False, True, False]
    assert sum(pattern.count("*") for pattern in tried) <= 4_000 * len(verdicts)


@pytest.mark.parametrize("end", ["", "$"])
@pytest.mark.parametrize("path", ["/" + "a" * 300, "/" + "a" * 2000, "/%61" + "a" * 300])
def test_a_url_that_takes_long_to_compare_with_all_rules_is_forbidden(
    tried: list[str], end: str, path: str
) -> None:
    lines = "".join(f"Disallow: /*{'a' * (n % 7 + 2)}*{'a' * (n % 9 + 2)}*b{end}\n" for n in range(990))
    found = rules("User-agent: *\n" + lines)
    assert not found.allows(path)
    assert len(tried) * len(path) < 60_000
    assert found.allows("/x")


def test_of_many_rules_only_those_are_tried_that_a_url_may_match(tried: list[str]) -> None:
    found = rules("User-agent: *\n" + "".join(f"Disallow: /*?p{n:03}=*&x\n" for n in range(900)))
    assert not found.allows("/" + "a" * 100 + "?p017=1&x=1")
    assert found.allows("/" + "a" * 100 + "?p017=1&y=1")
    assert tried.count("/*?p017=*&x") == 2
    assert len(tried) < 50


def test_a_thousand_ends_and_places_elsewhere_close_nothing_else() -> None:
    """As in real files: an end for each page, and stars below many folders."""
    ends = "".join(f"Disallow: /help/a-page-with-a-long-name/{number}$\n" for number in range(1000))
    found = rules(f"User-agent: *\n{ends}Allow: /help/a-page-with-a-long-name/7$\n")
    assert [found.allows(f"/help/a-page-with-a-long-name/{x}") for x in (7, 8, "8x", "")] == [
        True,
        False,
        True,
        True,
    ]
    stars = "".join(f"Disallow: /{number}/shop/*/facets/feature-style/*\n" for number in range(500))
    found = rules(f"User-agent: *\n{stars}")
    assert [found.allows(f"/{x}/shop/a/facets/feature-style/b") for x in (7, 8, 901)] == [False, False, True]


def test_a_verdict_that_took_long_is_remembered(tried: list[str]) -> None:
    found = rules("User-agent: *\n" + "".join(f"Disallow: /*/{n:03}/*.gif\n" for n in range(900)))
    assert [found.allows("/a/007/b.gif") for _ in range(3)] == [False] * 3
    assert tried.count("/*/007/*.gif") == 1


def test_many_rules_decide_as_the_slow_reading_does() -> None:
    random = Random(3)
    words = ["a", "b", "ab", "/", "?", "=", ".gif", "x1", "x2", "page"]

    def text(stars: bool) -> str:
        return "".join(random.choice([*words, "*"] if stars else words) for _ in range(random.randint(1, 6)))

    pairs = [(random.random() < 0.4, f"/{text(True)}{random.choice(('', '', '$'))}") for _ in range(700)]
    found, verdicts = RobotsRules(pairs), []
    for _ in range(300):
        target = f"/{text(False)}"
        matching = [(len(pattern), allow) for allow, pattern in pairs if as_expression(pattern).match(target)]
        verdicts.append(found.allows(target))
        assert verdicts[-1] == (max(matching)[1] if matching else True)
    assert {True, False} == set(verdicts)


def test_thousands_of_rules_are_all_known() -> None:
    found = rules("User-agent: *\n" + "".join(f"Disallow: /{number}/\n" for number in range(20_000)))
    assert found.allows("/x/19999/")
    assert not found.allows("/19999/x")


@pytest.mark.parametrize(
    ("rules", "target", "allowed"),
    [
        ("Disallow: /private/", "/%70rivate/y", False),
        ("Disallow: /%70riv/", "/priv/a", False),
        ("Disallow: /t%7Eilde", "/t~ilde", False),
        ("Disallow: /t~ilde", "/t%7eilde", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /a/b", "/a%2Fb", True),
        ("Disallow: /\nAllow: /%62", "/b", False),
        ("Disallow: /\nAllow: /b", "/%62", False),
        ("Disallow: /\nAllow: /b", "/b", True),
        ("Disallow: /\nAllow: /%7Emak", "/~mak/x", True),
        ("Disallow: /\nAllow: /~mak", "/%7emak/x", True),
        ("Disallow: /a%2Dz%5F%2E", "/a-z_.html", False),
        ("Disallow: /go?to=https://b.org", "/go?to=https%3A%2F%2Fb.org/x", False),
        ("Disallow: /*to=https%3a%2f%2fb.org", "/go?to=https://b.org/x", False),
        ("Disallow: /go?to=https://b.org", "/go?to=https%3A%2F%2Fc.org", True),
    ],
)
def test_an_escape_that_need_not_be_is_no_way_around_a_rule(rules: str, target: str, allowed: bool) -> None:
    parsed = RobotsRules.parse(f"User-agent: *\n{rules}\n".encode(), "barkspider")
    assert parsed.allows(target) == allowed


@pytest.mark.parametrize(
    ("rule", "closed", "open_"),
    [
        ("/file-with-a-%2A.html", "/file-with-a-*.html", "/file-with-a-b.html"),  # the two of RFC 9309, 2.2.3
        ("/foo-%24", "/foo-$", "/foo-"),
        ("/foo-%24", "/foo-$bar", "/foo-bar"),
        ("/%2a", "/%2A", "/a"),
        ("/*%2A*.gif$", "/a*b.gif", "/ab.gif"),
        ("/a$b", "/a%24b", "/a"),
        ("/a%24$", "/a$", "/a$b"),
    ],
)
def test_an_escaped_star_or_dollar_is_the_character(rule: str, closed: str, open_: str) -> None:
    for found in (
        rules(f"User-agent: *\nDisallow: {rule}\n"),
        kept(rules(f"User-agent: *\nDisallow: {rule}\n")),
    ):
        assert (found.allows(closed), found.allows(open_)) == (False, True)


def kept(found: RobotsRules) -> RobotsRules:
    return RobotsRules.decode(found.encode())


def test_rules_that_were_kept_give_every_verdict() -> None:
    for case in google("allowed"):
        found = kept(RobotsRules.parse(case["robots"].encode(), case["ua"]))
        assert found.allows(target_of(case["url"])) == case["allowed"], case["test"]


@given(
    st.lists(st.tuples(st.booleans(), st.text(alphabet="a7E/*$%ツ\n", min_size=1, max_size=10)), max_size=8),
    st.lists(st.text(alphabet="a7E/$%~\n", max_size=12).map(lambda text: f"/{text}"), max_size=20),
    st.one_of(st.none(), st.floats(0, 1e9)),
)
def test_rules_that_were_kept_decide_as_before(
    pairs: list[tuple[bool, str]], targets: list[str], delay: float | None
) -> None:
    found = RobotsRules(pairs, delay)
    again = kept(found)
    assert again.crawl_delay == delay
    assert [again.allows(target) for target in targets] == [found.allows(target) for target in targets]
    assert again.encode() == found.encode()


def test_more_wildcards_than_are_tried_are_kept_as_the_prefixes_that_they_became() -> None:
    pairs = [(False, f"/%61{number}*x") for number in range(2_200)]
    pairs += [(False, "/b$*x"), (True, "/b$*xy"), (False, "/%63$$")]
    found = RobotsRules(pairs)
    again = kept(found)
    targets = [f"/{start}{number}{end}" for start in ("a", "%61") for number in (7, 2100) for end in "xy"]
    targets += ["/b", "/b$", "/b$x", "/b$xy", "/c", "/c$", "/%63$", "/d"]
    verdicts = [found.allows(target) for target in targets]
    assert [again.allows(target) for target in targets] == verdicts
    assert (found.allows("/a7y"), found.allows("/a2100y"), found.allows("/b")) == (True, False, True)


def test_all_and_nothing_are_kept_as_the_objects_that_all_share() -> None:
    assert kept(ALLOW_ALL) is kept(rules("Sitemap: http://a.example/map")) is ALLOW_ALL
    assert kept(DISALLOW_ALL) is kept(rules("User-agent: *\nDisallow: /\n")) is DISALLOW_ALL
    slow = kept(rules("User-agent: *\nDisallow: /\nCrawl-delay: 0\n"))
    assert (slow.crawl_delay, slow.allows("/x")) == (0.0, False)


def test_bytes_that_are_no_rules_are_refused() -> None:
    sound = RobotsRules([(False, "/a"), (True, "/b*c")]).encode()
    for damaged in (sound[:-1], sound + b"x", sound[:20], b"x" * 40, sound[:24] + b"\x03" + sound[25:]):
        with pytest.raises(ValueError, match="damaged"):
            RobotsRules.decode(damaged)


def test_the_largest_file_is_kept_in_less_than_it_had() -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /{number}/\n" for number in range(27_000))
    assert len(rules(text).encode()) < len(text) // 2
