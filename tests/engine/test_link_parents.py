from barkspider.core.settings import Settings
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
