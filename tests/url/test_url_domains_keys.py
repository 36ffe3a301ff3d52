"""Pay-level domains and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from barkspider.url import Domains, KeyMaker, is_address
from barkspider.url.suffixes import registered

ICANN = Domains()


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("www.example.com.", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.det.wa.edu.au", "det.wa.edu.au"),
        ("one.blogspot.com", "blogspot.com"),
        ("co.uk", "co.uk"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("a.unknown-suffix", "a.unknown-suffix"),
        ("x.a.unknown-suffix", "a.unknown-suffix"),
        ("www.ck", "www.ck"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        (".", "."),
    ],
)
def test_pay_level(host: str, domain: str) -> None:
    assert ICANN.pay_level(host) == domain


LIBRARY = {private: PublicSuffixList(only_icann=not private) for private in (False, True)}
_RULES = sorted(
    {line.split()[0] for line in Path(PSLFILE).read_text("utf-8").splitlines() if line[:2] not in ("", "//")}
)


@pytest.mark.parametrize("private", [False, True])
def test_domains_below_every_rule_are_those_of_the_library(private: bool) -> None:
    for rule in _RULES:
        name = rule.lstrip("!").replace("*", "any")
        for host in (name, f"a.{name}", f"b.a.{name}", name.partition(".")[2]):
            host = host if host.isascii() else host.encode("idna").decode()
            assert registered(host, private) == LIBRARY[private].privatesuffix(host), host


@given(
    st.lists(
        st.sampled_from(["a", "www", "city", "kobe", "jp", "uk", "co", "com", "ck", "s3", "amazonaws", ""]),
        max_size=9,
    ),
    st.booleans(),
)
def test_domains_are_those_of_the_library(labels: list[str], private: bool) -> None:
    host = ".".join(labels).rstrip(".")
    assert registered(host, private) == (LIBRARY[private].privatesuffix(host) if host else None)


def test_private_section_is_a_choice() -> None:
    assert Domains(private=True).pay_level("a.one.blogspot.com") == "one.blogspot.com"


@given(st.from_regex(r"[a-z0-9.\[\]:-]{1,30}", fullmatch=True))
def test_a_domain_is_its_own_domain(host: str) -> None:
    domain = ICANN.pay_level(host)
    assert domain
    assert ICANN.pay_level(domain) == domain


def test_addresses() -> None:
    assert is_address("10.0.0.1")
    assert is_address("[2001:db8::1]")
    assert not is_address("example.com")
    assert not is_address("a1.b2c")


@given(st.lists(st.binary(max_size=40)), st.integers(0, 2**63 - 1))
def test_keys_are_seeded_xxh3(texts: list[bytes], seed: int) -> None:
    keys = KeyMaker(seed)
    column = keys.column(texts)
    assert column.dtype == np.uint64
    assert (
        column.tolist()
        == [keys.of(text) for text in texts]
        == [xxhash.xxh3_64(text, seed).intdigest() for text in texts]
    )


def test_texts_count_as_utf8() -> None:
    assert KeyMaker(3).of("é") == KeyMaker(3).of("é".encode())
