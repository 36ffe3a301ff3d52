"""What a crawl says to its Global Frontier: which sites there are, who crawls which, what came of it.

A check-out gives a site a *fence*, the number of that visit. Whoever no longer has the site, because its lease was over and
somebody freed it, has a fence that is not the site's any more: what it checks in is refused. So whatever a process slept
through, a visit counts once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from barkspider.sites.database import Database, Transaction

_KILLS = 3  # a site that has ended so many processes is left
SEED, FOUND, AGAIN, LATER = range(4)  # turns: sites of a smaller one come first
KILLED = "ended_its_process"
_SIGN = 1 << 63


class State(IntEnum):
    """Where a site is: the three lists of section 4.1, and those that were tried in vain for the last time."""

    TO_CRAWL = 0
    BEING_CRAWLED = 1
    CRAWLED = 2
    LEFT = 3


class Link(NamedTuple):
    """A URL of a site: the site with its name and its domain, the URL as a packed row with its key."""

    site: int
    name: str
    domain: int
    key: int
    row: bytes
    is_seed: bool = False


class Row(NamedTuple):
    """A site that was checked out: the URLs to begin with that no visit has had, and the keys of all that earlier ones had
    seen, 8 bytes each."""

    key: int
    fence: int
    name: str
    seen: bytes
    rows: tuple[bytes, ...]


class Visit(NamedTuple):
    """What came of a visit. `failed_by` is why the site as a whole could not be crawled, "" if it could."""

    seen: bytes
    pages: int = 0
    failed: int = 0
    refused: int = 0
    failed_by: str = ""


class Registry:
    """See the module. One thread; any number of them in any number of processes.

    >>> import tempfile, pathlib
    >>> from barkspider.sites import open_database
    >>> folder = tempfile.TemporaryDirectory()
    >>> registry = Registry(open_database("", pathlib.Path(folder.name) / "sites.db", ""), lease=60.0, tries=3)
    >>> registry.add([Link(7, "a.example", 7, 1, b"...", is_seed=True)])
    >>> (site,), left = registry.check_out("me", 1)
    >>> registry.check_out("you", 1)
    ([], True)
    >>> registry.check_in(7, site.fence, Visit(b"", pages=1), []), registry.check_out("you", 1), registry.counts()
    (True, ([], False), {'crawled': 1})
    >>> registry.close(); folder.cleanup()
    """

    def __init__(
        self, database: Database, lease: float, tries: int, wall: Callable[[], float] = time.time
    ) -> None:
        """A site that failed `tries` times is left. `wall` is the time that people know."""
        self._database, self._lease, self._tries, self._wall = database, lease, tries, wall

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    # ── what processes of a crawl say ──────────────────────────────────────────────────────────

    def add(self, links: Sequence[Link]) -> None:
        """URLs to be crawled, whoever found them; those that are known do not count."""
        self._database.transact(lambda run: self._add(run, links))

    def check_out(self, owner: str, most: int) -> tuple[list[Row], bool]:
        """At most so many sites, and whether any are left: to be crawled, or crawled by others, which may find more."""

        def work(run: Transaction) -> tuple[list[Row], bool]:
            now = run.now()
            _free(run, "lease < ?", (now,), lost=1)
            taken: list[Row] = []
            while len(taken) < most:
                rows = run(
                    "SELECT key, name, fence, done, seen FROM sites WHERE state = 0 ORDER BY turn, added, key LIMIT ?",
                    (most - len(taken),),
                )
                if not rows:
                    break
                for site in rows:
                    taken += self._take(run, owner, now, *site)
            left = run(
                "SELECT EXISTS (SELECT 1 FROM sites WHERE state = 0), "
                "EXISTS (SELECT 1 FROM sites WHERE state = 1 AND owner <> ?)",
                (owner,),
            )
            return taken, any(left[0])

        return self._database.transact(work)

    def renew(self, owner: str, held: Collection[tuple[int, int]] | None = None) -> dict[int, int]:
        """Prolong all leases of a process; the sites that it has, with their fences. Of others than those `held`, if these
        are told, it has never heard, or has forgotten them: they are freed."""

        def work(run: Transaction) -> dict[int, int]:
            for key, fence in run("SELECT key, fence FROM sites WHERE state = 1 AND owner = ?", (owner,)):
                if held is not None and (_unsigned(key), fence) not in held:
                    _free(run, "key = ?", (key,))
            run("UPDATE sites SET lease = ? WHERE state = 1 AND owner = ?", (run.now() + self._lease, owner))
            rows = run("SELECT key, fence FROM sites WHERE state = 1 AND owner = ?", (owner,))
            return {_unsigned(key): fence for key, fence in rows}

        return self._database.transact(work)

    def prolong(self) -> None:
        """Let all who have sites keep them for a lease from now on: for a crawl that begins again after a while."""
        self._database.transact(
            lambda run: run("UPDATE sites SET lease = ? WHERE state = 1", (run.now() + self._lease,))
        )

    def check_in(self, key: int, fence: int, visit: Visit, links: Sequence[Link]) -> bool:
        """End a visit with the URLs of other sites that it found; whether it counts. Said twice, it counts once."""

        def work(run: Transaction) -> bool:
            found = run("SELECT fence, answered, tries FROM sites WHERE key = ?", (_signed(key),))
            if not found or found[0][0] != fence:
                return False
            _, answered, tries = found[0]
            if answered == fence:
                return True
            self._end(run, _signed(key), fence, visit, tries + 1)
            self._add(run, links)
            return True

        return self._database.transact(work)

    def blame(self, key: int, fence: int) -> bool:
        """A process that has a site has ended while it looked at a page of it. It goes on with it, but after the third time
        the site is left; whether it is."""

        def work(run: Transaction) -> bool:
            found = run("SELECT fence, state, kills FROM sites WHERE key = ?", (_signed(key),))
            if not found or found[0][:2] != (fence, State.BEING_CRAWLED):
                return False
            kills = int(found[0][2]) + 1
            run("UPDATE sites SET kills = ? WHERE key = ?", (kills, _signed(key)))
            if kills >= _KILLS:
                _free(run, "key = ?", (_signed(key),))
                run("UPDATE sites SET state = 3, reason = ? WHERE key = ?", (KILLED, _signed(key)))
            return kills >= _KILLS

        return self._database.transact(work)

    # ── what people say ────────────────────────────────────────────────────────────────────────

    def counts(self) -> dict[str, int]:
        """How many sites are in each state, by its name; none is left out but those with none."""

        def work(run: Transaction) -> dict[str, int]:
            rows = run("SELECT state, count(*) FROM sites GROUP BY state ORDER BY state")
            return {State(state).name.lower(): count for state, count in rows}

        return self._database.transact(work)

    def sites(self, states: Collection[State] = (), like: str = "", most: int = 0) -> list[dict[str, Any]]:
        """Sites in these states, all if none are named, whose names have `like` in them, in the order of their names; at
        most so many, 0 for all. `over` says whether a lease has ended."""
        columns = "name, state, turn, owner, lease, tries, kills, lost, reason, visits, pages, failed, refused, begun, ended"

        def work(run: Transaction) -> list[dict[str, Any]]:
            chosen = tuple(states) or tuple(State)
            marks = ", ".join("?" * len(chosen))
            rows = run(
                f"SELECT {columns} FROM sites WHERE state IN ({marks}) AND name LIKE ? ORDER BY name"
                + (f" LIMIT {most:d}" if most else ""),
                (*map(int, chosen), f"%{like}%"),
            )
            now, found = run.now(), []
            for row in rows:
                site = dict(zip(columns.split(", "), row, strict=True))
                lease = site.pop("lease")
                state = State(site["state"])
                over = state is State.BEING_CRAWLED and lease < now
                found.append({**site, "state": state.name.lower(), "over": over})
            return found

        return self._database.transact(work)

    def free(self, name: str = "") -> int:
        """Take sites away from whoever has them: the one of this name, or all whose leases are over; how many."""

        def work(run: Transaction) -> int:
            where, values = ("name = ?", (name,)) if name else ("lease < ?", (run.now(),))
            return _free(run, where, values, lost=1)

        return self._database.transact(work)

    def repeat(self, name: str) -> bool:
        """Let a site be crawled anew, with all URLs that were ever found of it; whether there is one that is crawled or
        left."""

        def work(run: Transaction) -> bool:
            found = run("SELECT key FROM sites WHERE name = ? AND state IN (2, 3)", (name,))
            for (key,) in found:
                run(
                    "UPDATE sites SET state = 0, turn = ?, done = 0, seen = NULL, tries = 0, kills = 0, reason = '' WHERE key = ?",
                    (AGAIN, key),
                )
                run("UPDATE links SET visit = 0 WHERE site = ?", (key,))
            return bool(found)

        return self._database.transact(work)

    def remove(self, name: str) -> bool:
        """Let a site be left, whatever was found of it and will be; who has it is not heard any more. Whether there is one."""

        def work(run: Transaction) -> bool:
            found = run("SELECT key FROM sites WHERE name = ? AND state <> 3", (name,))
            for (key,) in found:
                run(
                    "UPDATE sites SET state = 3, fence = fence + 1, owner = NULL, lease = NULL, reason = 'removed' WHERE key = ?",
                    (key,),
                )
            return bool(found)

        return self._database.transact(work)

    # ── within a transaction ───────────────────────────────────────────────────────────────────

    def _add(self, run: Transaction, links: Sequence[Link]) -> None:
        sites = {_signed(link.site): link for link in reversed(links)}
        for link in links:
            if link.is_seed:
                sites[_signed(link.site)] = link
        added = self._wall()
        run.many(
            "INSERT INTO sites (key, name, domain, state, turn, added) VALUES (?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING",
            (
                (key, link.name, _signed(link.domain), SEED if link.is_seed else FOUND, added)
                for key, link in sites.items()
            ),
        )
        run.many(
            "INSERT INTO links (site, key, row) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            ((_signed(link.site), _signed(link.key), link.row) for link in links),
        )
        run.many(
            "UPDATE sites SET state = 0, turn = ? WHERE key = ? AND state = 2 "
            "AND EXISTS (SELECT 1 FROM links WHERE site = sites.key AND visit = 0)",
            ((AGAIN, key) for key in sites),
        )

    def _take(
        self,
        run: Transaction,
        owner: str,
        now: float,
        key: int,
        name: str,
        fence: int,
        done: int,
        seen: bytes | None,
    ) -> list[Row]:
        """Check out a site; nothing if all that was found of it since its last visit was seen in that."""
        fence, known = fence + 1, bytes(seen or b"")
        run("UPDATE links SET visit = ? WHERE site = ? AND (visit = 0 OR visit > ?)", (fence, key, done))
        keys = {known[place : place + 8] for place in range(0, len(known), 8)}
        rows = tuple(
            bytes(row)
            for link, row in run(
                "SELECT key, row FROM links WHERE site = ? AND visit = ? ORDER BY key", (key, fence)
            )
            if _unsigned(link).to_bytes(8, "little") not in keys
        )
        if not rows:
            run("UPDATE sites SET state = 2, fence = ?, done = ? WHERE key = ?", (fence, fence, key))
            return []
        run(
            "UPDATE sites SET state = 1, fence = ?, owner = ?, lease = ?, begun = ? WHERE key = ?",
            (fence, owner, now + self._lease, self._wall(), key),
        )
        return [Row(_unsigned(key), fence, name, known, rows)]

    def _end(self, run: Transaction, key: int, fence: int, visit: Visit, tries: int) -> None:
        run(
            "UPDATE sites SET owner = NULL, lease = NULL, answered = ?, ended = ?, reason = ?, visits = visits + 1, "
            "pages = pages + ?, failed = failed + ?, refused = refused + ? WHERE key = ?",
            (fence, self._wall(), visit.failed_by, visit.pages, visit.failed, visit.refused, key),
        )
        if visit.failed_by:
            state = State.LEFT if tries >= self._tries else State.TO_CRAWL
            run("UPDATE sites SET state = ?, turn = ?, tries = ? WHERE key = ?", (state, LATER, tries, key))
            return
        run(
            "UPDATE sites SET state = 2, done = ?, seen = ?, tries = 0, kills = 0 WHERE key = ?",
            (fence, visit.seen, key),
        )
        run(
            "UPDATE sites SET state = 0, turn = ? WHERE key = ? "
            "AND EXISTS (SELECT 1 FROM links WHERE site = sites.key AND visit = 0)",
            (AGAIN, key),
        )


def _free(run: Transaction, where: str, values: Sequence[Any], lost: int = 0) -> int:
    """Take sites from whoever has them, so that these are not heard any more; they come up behind all others."""
    rows = run(f"SELECT count(*) FROM sites WHERE state = 1 AND {where}", values)
    if rows[0][0]:
        run(
            "UPDATE sites SET state = 0, turn = ?, fence = fence + 1, owner = NULL, lease = NULL, lost = lost + ? "
            f"WHERE state = 1 AND {where}",
            (LATER, lost, *values),
        )
    return int(rows[0][0])


def _signed(key: int) -> int:
    """A key as databases have it.

    >>> _signed(1), _signed(2**64 - 1)
    (1, -1)
    """
    return key - 2 * _SIGN if key >= _SIGN else key


def _unsigned(key: int) -> int:
    return key + 2 * _SIGN if key < 0 else key
