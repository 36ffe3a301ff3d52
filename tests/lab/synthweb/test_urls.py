"""Every page has one URL, and it is what a crawler's normalisation leaves as it is."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList
from url import URL

from barkspider.core.errors import UsageError
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.lab.synthweb.names import LABELS, SUFFIXES, label_number

_WEBS = [
    Web(WebSpec(pages=pages, seed=seed, https_share=0.3)) for pages, seed in ((7, 1), (20_000, 2), (10**9, 3))
]


@given(st.sampled_from(_WEBS), st.data())
def test_a_page_is_found_by_its_url(web: Web, data: st.DataObject) -> None:
    page = data.draw(st.integers(0, web.spec.pages - 1))
    url = web.url(page)
    assert web.page_id(url) == page
    assert web.exists(url)


@given(st.sampled_from(_WEBS), st.data())
def test_urls_are_canonical(web: Web, data: st.DataObject) -> None:
    url = web.url(data.draw(st.integers(0, web.spec.pages - 1)))
    parts = urlsplit(url)
    assert len(url) < 200
    assert urlunsplit(parts) == url
    assert str(URL.parse(url)) == url  # the WHATWG's parser
    assert re.fullmatch(r"[!-~]+", url)
    assert not re.search(r"""["'<>`{}|\\^#]|%|//.*//|/\.""", url)
    assert not re.search(r"(index|default)\.s?html?$", url)
    assert not re.search(r"(?i)[?&;](phpsessid|sid|sessionid|jsessionid)=", url)
    assert not re.search(r"\?([NMSD]=[AD]|C=)", url)
    assert parts.port is None
    assert parts.netloc == parts.netloc.lower()


@given(st.sampled_from(_WEBS), st.data())
def test_any_other_url_is_no_page(web: Web, data: st.DataObject) -> None:
    url = web.url(data.draw(st.integers(0, web.spec.pages - 1)))
    at = data.draw(st.integers(0, len(url) - 1))
    other = url[:at] + data.draw(st.sampled_from("0123456789abxyz-_./?&=é")) + url[at + 1 :]
    page = web.page_id(other)
    assert page is None or web.url(page) == other
    for wrong in (url + "0", url + "/", url + "?", url + "#x", url.upper(), url[:-1]):
        page = web.page_id(wrong)
        assert page is None or web.url(page) == wrong


@given(st.text(max_size=60))
def test_any_text_is_refused_gently(text: str) -> None:
    web = _WEBS[1]
    assert web.page_id(text) is None
    assert web.page_id("http://" + text) is None
    assert web.page_id(web.seeds()[0] + text) in (None, 0)
    assert web.server(text) is None
    assert not web.is_spam(text)


def test_leading_zeros_and_rank_zero_are_no_pages(small: Web) -> None:
    url = small.url(5)
    number = re.findall(r"\d+", url)[-1]
    assert small.page_id(url.replace(number, "0" + number)) is None
    assert small.page_id(url.replace(number, "0")) is None


def test_urls_of_the_whole_web_differ(small: Web) -> None:
    import numpy as np

    urls = small.urls(np.arange(small.spec.pages))
    assert len(set(urls)) == small.spec.pages
    assert urls[123] == small.url(123)


def test_domains_are_pay_level_domains(small: Web) -> None:
    suffixes = PublicSuffixList(only_icann=True)
    tables = small.tables
    for domain in range(small.spec.domains):
        first = tables.first_host[domain]
        names = {small.host_name(host) for host in range(first, tables.first_host[domain + 1])}
        assert len(names) == tables.first_host[domain + 1] - first
        assert len({suffixes.privatesuffix(name) for name in names}) == 1
    assert all(suffixes.publicsuffix(suffix) == suffix for suffix in SUFFIXES)


def test_labels_are_numbered_without_a_gap() -> None:
    names = [
        LABELS[k % len(LABELS)] + (str(k // len(LABELS)) if k >= len(LABELS) else "") for k in range(500)
    ]
    assert [label_number(name) for name in names] == list(range(1, 501))


def test_a_page_that_is_not_there(small: Web) -> None:
    with pytest.raises(UsageError, match="20,000"):
        small.url(20_000)
