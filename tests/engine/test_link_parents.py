from barkspider.core.records import Flag
from barkspider.core.settings import Page, Settings
from barkspider.engine.links import LinkMaker


def test_links_and_redirects_know_the_page_they_come_from_and_when_they_were_found() -> None:
    now = 1000.0
    maker = LinkMaker(Settings(seed=1), ["http://a.example/"], lambda: now)
    (seed,) = maker.seeds().rows()
    assert (seed.parent, seed.found) == (0, 1000)
    now = 2000.5
    (link,) = maker.batch(maker.links(["/next"], "http://a.example/", seed)).rows()
    assert (link.url, link.parent, link.found) == (b"http://a.example/next", seed.key, 2000)
    made = maker.redirect("/other", link)
    assert made is not None
    target, _ = made
    assert (target.url, target.parent, target.found) == (b"http://a.example/other", link.key, 2000)


def test_a_url_carries_whether_a_page_under_the_wanted_domains_links_to_it() -> None:
    """However long ago that was: nothing is remembered of the page."""
    maker = LinkMaker(Settings(seed=1, page=Page(keep_tlds=("pt",))), ["http://a.pt/", "http://b.example/"])
    inside, outside = maker.seeds().rows()

    def linked(page: object, *hrefs: str) -> list[bool]:
        rows = maker.batch(maker.links(hrefs, "http://c.example/", page, ["http://a.pt/s.css"])).rows()  # type: ignore[arg-type]
        return [bool(row.flags & Flag.LINKED) for row in rows]

    assert linked(inside, "http://a.pt/1", "http://b.example/2") == [True, True, True]
    assert linked(outside, "http://a.pt/1") == [False, False]
    (row, *_) = maker.batch(maker.links(["http://b.example/3"], "http://a.pt/", inside)).rows()
    made = maker.redirect("http://b.example/4", row)
    assert made is not None
    assert made[0].flags & Flag.LINKED
    assert not maker.links(["/x"], "http://b.example/", row)[0].urls.flags[0] & Flag.LINKED
