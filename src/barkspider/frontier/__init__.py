"""Which URL is fetched next, and when: a machine without network, asyncio or clock.

The engine calls `step(now, outcomes)` and gets instructions and the time of its next call (see
`barkspider.core.events`). Inside, URLs move like this:

    outcomes ─► driver ─ Found ─► source, such as `irlbot` ─ admits, put ─► gate ─► ready ─► instructions
                  │                 ▲                                                     │
                  └► ready          └───────────────── come_back ◄──── Q_W ◄─── put_off ──┘

`driver` applies outcomes, follows redirects and keeps to limits. It owns a `source`, which is where new links go and
where URLs come from: `irlbot` has them in `stages` on disk, by their domains' reputation (`budget`) or by the links to them
(`backlinks`), until the rules of their sites are known (`robots`); `sydney` takes a few of each page into RAM (`sampling`) and
leaves the others on disk; `sydney_on_disk` has the set of seen URLs there too, and lets pages wait until it has told
(`inquiries`). All hand them on through the `gate`, which knows the `shares` of sites and domains, what an earlier run has done
already, which redirects led to a URL (`trails`), what links that were found later say of it (`later`), which hosts
are copies of others (`mirrors`), and Q_W.
`site_by_site` has a `local` frontier in RAM for each site that it has checked out of a database, which knows of all others.
`ready` has a queue a host: there `politeness` says who may be contacted when, and `robots` what they forbid.
What people have ruled are the `rulings`, and `traps` are places that repeat themselves without end: what these keep from being fetched is
`held`. `decisions` counts, by rule, what is refused, fails, is put off, held back or dropped, and traces a sample of it.
`memory` writes what is in RAM to disk at each checkpoint, and reads it back. `looking` tells people what is in RAM of a host.

Several processes: `ownership` says whose a link is, or `assigning`, which has hosts looked up for it; `modes` says what
becomes of one that another process owns; `sorting` does that, and collects what is for others in an `outbox` each. `exchange`
makes files of that (`batches`) and takes what others send, and `strays` has what is to be fetched when own URLs run out.
`census` samples what each has fetched, for the overlap and coverage of all; `standing` is what one that ranks the domains of
all is told, and tells. When a stopped crawl is divided anew, `dividing` hands on what its frontiers hold, in `lots`.
Simulations share `budget`, `sampling` and `modes`.
"""

from pathlib import Path

from barkspider.core.settings import Settings
from barkspider.frontier.assigning import Assigning
from barkspider.frontier.census import Census
from barkspider.frontier.driver import Driver
from barkspider.frontier.exchange import Exchange
from barkspider.frontier.gate import Gate, States
from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.memory import Memory
from barkspider.frontier.site_by_site import SiteBySite
from barkspider.frontier.sorting import Sorting
from barkspider.frontier.source import Source
from barkspider.frontier.stages import Stages
from barkspider.frontier.strays import Strays
from barkspider.storage.env import Env

__all__ = ["Driver", "Exchange", "open_frontier"]


def open_frontier(
    settings: Settings,
    env: Env,
    folder: Path,
    *,
    state: States = lambda _: None,
    resumed: float | None = None,
    background: bool = True,
    part: bool = False,
) -> Driver:
    """The frontier that the settings choose, with its files in a folder.

    `state` gives what the last checkpoint has of a structure; `resumed` is the time, if there was one or there are
    outcomes to be replayed. Without `background` merges run within `step`: for clocks that do not go by themselves.
    `part` says that it is that of a job of parts, though there may be only one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as job:
    ...     frontier = open_frontier(Settings(frontier="sydney"), Env(), Path(job))
    ...     frontier.step(0.0, []), frontier.finished(), frontier.close()
    (([], inf), True, None)
    """
    gate = Gate(settings, env, folder, state)
    source: Source
    if settings.frontier == "irlbot":
        source = Irlbot(settings, gate, Stages(settings, env, folder, state=state, background=background))
    elif settings.frontier == "site":
        source = SiteBySite(settings, gate)
    else:
        # Here: their kernels take a second to compile.
        from barkspider.frontier.sydney import Sydney
        from barkspider.frontier.sydney_on_disk import SydneyOnDisk

        if settings.sydney.seen == "disk":
            source = SydneyOnDisk(settings, env, folder, gate, state, background)
        else:
            source = Sydney(settings, env, folder, gate, state)
    kept = state(Driver.name)
    exchange = None
    if settings.parallel.processes > 1 or part:
        strays = None
        if settings.parallel.mode == "cross-over":
            strays = Strays(env, folder, state(Strays.name))
        census = Census(env, folder, state(Census.name))
        assigning = None
        if settings.parallel.partition == "address":
            assigning = Assigning(settings, env, folder, state(Assigning.name))
        sorting = Sorting(settings, env, folder, gate.trails, census, strays, assigning)
        exchange = Exchange(settings, env, folder, sorting, state(Exchange.name))
    driver = Driver(settings, gate, source, Memory(env, folder, Driver.name, kept), exchange)
    if resumed is not None:
        gate.resume(resumed)
        if kept is not None:
            driver.recall()
    return driver
