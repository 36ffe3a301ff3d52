from pathlib import Path

import pytest

from barkspider.core.errors import SettingsError
from barkspider.core.load import PRESETS, describe_settings, dump_settings, load_settings, replace
from barkspider.core.settings import Settings


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_being_written_and_read(preset: str, tmp_path: Path) -> None:
    settings = load_settings(
        preset, options=["scope.ports=80,8080", "agent.contact=a@b.example", "fetch.timeout=1m1ms"]
    )
    file = tmp_path / "settings.toml"
    file.write_text(dump_settings(settings))
    assert load_settings(file=file) == settings


def test_the_presets_hold_the_papers_values() -> None:
    irlbot, negra = load_settings("irlbot"), load_settings("viuva-negra")
    assert (irlbot.politeness.host_delay, irlbot.politeness.server_delay) == (40.0, 1.0)
    assert (irlbot.budget.base, irlbot.budget.top, irlbot.budget.top_domains) == (10, 10_000, 10_000)
    assert (negra.limits.site_urls, negra.limits.site_duplicates, negra.scope.depth) == (5_000, 10, 5)
    assert (negra.fetch.timeout, negra.fetch.max_size, negra.url.max_length) == (60.0, 2_000_000, 200)
    assert negra.scope.depth_from == "site"
    assert negra.url.add_www
    assert negra.fetch.types == negra.page.keep_types
    assert "application/pdf" in negra.fetch.types
    default = load_settings()
    assert (default.politeness.host_delay, default.politeness.server_delay) == (2.0, 1.0)
    assert (default.limits.site_urls, default.limits.site_duplicates, default.scope.depth) == (0, 0, 0)


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text('[politeness]\nhost_delay = "30s"\nserver_delay = "3s"\n')
    settings = load_settings("irlbot", file, ["politeness.server_delay=4s"])
    assert (settings.politeness.host_delay, settings.politeness.server_delay) == (30.0, 4.0)
    assert settings.scope.level == "web"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sydny.sample=8", "did you mean 'sydney.sample'"),
        ("host_delay=8s", "did you mean 'politeness.host_delay'"),
        ("politeness.host_delay", "has no value"),
        ("politeness.host_delay=8", "is not a duration"),
        ("fetch.max_size=8", "is not a size"),
        ("sydney.sample=many", "not a whole number"),
        ("sydney.sample=-1", "out of range"),
        ("scope.depth=70000", "out of range"),
        ("scope.level=planet", "not one of page, site, domain, web"),
        ("url.add_www=yes", "neither true nor false"),
        ("network.allow=127.0.0.1/8", "is not a network"),
        ("network.ports=127.0.0.0/8:80", "is not a port rule"),
        ("agent.name=a b", "letters, digits"),
        ("dns.servers=x", "like 9.9.9.9"),
        ("dns.servers=127.0.0.1:x", "like 9.9.9.9"),
        ("dns.servers=127.0.0.1:99999", "like 9.9.9.9"),
        ("dns.servers=[", "like 9.9.9.9"),
        ("dns.timeout=" + "9" * 30 + "d", "longer than 100 years"),
        ("fetch.max_size=" + "9" * 400 + "MB", "more than any disk"),
        ("fetch.timeout=0s", "out of range"),
        ("fetch.max_size=0B", "out of range"),
        ("sydney.sample=" + "9" * 30, "out of range"),
        ("scope.ports=70000", "out of range"),
        ("scope.schemes=", "nothing to crawl"),
        ("scope.include_hosts=\udcff", "cannot be printed"),
        ("url.index_names=a\x00b", "cannot be printed"),
        ("agent.contact=a\r\nX: y", "cannot be printed"),
        ("agent.contact=ü@b.example", "printable ASCII"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(option: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(options=[option])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[politeness]\nhost_dely = '2s'", "did you mean 'politeness.host_delay'"),
        ("[politeness]\nhost_delay = 2", "has no unit"),
        ("[sydney]\nsample = 'eight'", "takes a whole number"),
        ("[sydney]\nsample = true", "takes a whole number"),
        ("[scope]\nports = 80", "takes a list"),
        ("politeness = 2", "unknown setting 'politeness'"),
        ("[politeness", "not valid TOML"),
        ("\x00", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_what_would_be_right(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_settings(file=file)


def test_nothing_needs_no_unit(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text("[politeness]\nhost_delay = 0\n[limits]\nfree_space = '0'")
    settings = load_settings(file=file, options=["limits.bytes=0", "politeness.server_delay=0"])
    assert (settings.politeness.host_delay, settings.politeness.server_delay) == (0, 0)
    assert (settings.limits.free_space, settings.limits.bytes) == (0, 0)
    file.write_text("[politeness]\nhost_delay = false")
    with pytest.raises(SettingsError, match="has no unit"):
        load_settings(file=file)


def test_a_wrong_option_is_refused_even_when_a_later_one_wins() -> None:
    with pytest.raises(SettingsError, match="is not a duration"):
        load_settings(options=["limits.time=3q", "limits.time=3s"])


def test_merging_redirects_takes_supporters_in_whatever_order_they_are_given() -> None:
    options = ["budget.merge_redirects=true", "budget.reputation=supporters"]
    assert load_settings(options=options) == load_settings(options=options[::-1])
    with pytest.raises(SettingsError, match=r"with budget\.reputation = supporters only"):
        load_settings(options=options[:1])


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_bytes(b"\xef\xbb\xbf[sydney]\nsample = 3\n")
    assert load_settings(file=file).sydney.sample == 3


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read settings file"):
        load_settings(file=tmp_path / "none.toml")


def test_replace_changes_a_copy() -> None:
    before = Settings()
    after = replace(before, {"sydney.sample": 8})
    assert (before.sydney.sample, after.sydney.sample) == (16, 8)


def test_every_setting_is_described() -> None:
    rows = describe_settings()
    assert len(rows) == len({name for name, _, _ in rows}) > 60
    assert all(default and help_text for _, default, help_text in rows)


def test_the_preset_of_irlbot_leaves_out_what_is_known_to_be_no_html() -> None:
    excluded = load_settings("irlbot").scope.exclude_extensions
    assert {"jpg", "pdf", "zip", "mp3", "css", "js", "exe"} <= set(excluded)
    assert not set(excluded) & {
        "html",
        "htm",
        "xhtml",
        "php",
        "asp",
        "aspx",
        "jsp",
        "cgi",
        "dll",
        "pl",
        "xml",
        "com",
    }
    assert len(set(excluded)) == len(excluded)
    assert load_settings().scope.exclude_extensions == ()
