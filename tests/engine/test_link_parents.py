from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker


def test_links_and_redirects_know_the_page_they_come_from() -> None:
    maker = LinkMaker(Settings(seed=1), ["http://a.example/"])
    (seed,) = maker.seeds().rows()
    assert seed.parent == 0
    (link,) = maker.links(["/next"], "http://a.example/", seed).rows()
    assert (link.url, link.parent, link.depth) == (b"http://a.example/next", seed.key, 1)
    made = maker.redirect("/other", link)
    assert made is not None
    assert isinstance(made[0], UrlRow)
    assert (made[0].url, made[0].parent) == (b"http://a.example/other", link.key)
