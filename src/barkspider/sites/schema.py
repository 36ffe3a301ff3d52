"""The tables of the Global Frontier, in SQL that both databases understand, by numbered steps.

A step is never changed once it was in use: what is to be different is a further step. Keys are 64 bits with a sign, times of
visits are seconds since 1970, `lease` is in seconds of the database's own clock.
"""

from __future__ import annotations

# `bytes` and `real` are what a database calls them.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        # `fence` is the number of the last check-out; `done` that of the last visit that was completed, `answered` that of the
        # last check-in, whatever it said. `turn` and `added` are the order in which sites come up.
        """CREATE TABLE sites (
            key BIGINT PRIMARY KEY, name TEXT NOT NULL, domain BIGINT NOT NULL, state SMALLINT NOT NULL,
            turn SMALLINT NOT NULL, added {real} NOT NULL, fence BIGINT NOT NULL DEFAULT 0, done BIGINT NOT NULL DEFAULT 0,
            answered BIGINT NOT NULL DEFAULT 0, owner TEXT, lease {real}, tries INTEGER NOT NULL DEFAULT 0,
            kills INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',
            visits INTEGER NOT NULL DEFAULT 0, pages BIGINT NOT NULL DEFAULT 0, failed BIGINT NOT NULL DEFAULT 0,
            refused BIGINT NOT NULL DEFAULT 0, begun {real}, ended {real}, seen {bytes}
        )""",
        "CREATE INDEX sites_by_turn ON sites (turn, added, key) WHERE state = 0",
        "CREATE INDEX sites_by_lease ON sites (lease) WHERE state = 1",
        "CREATE INDEX sites_by_owner ON sites (owner) WHERE state = 1",
        # What a site is begun with: seeds, and links of others to it. `visit` is the check-out that had one, 0 if none did.
        """CREATE TABLE links (
            site BIGINT NOT NULL, key BIGINT NOT NULL, visit BIGINT NOT NULL DEFAULT 0, row {bytes} NOT NULL,
            PRIMARY KEY (site, key)
        )""",
        "CREATE INDEX links_to_come ON links (site) WHERE visit = 0",
    ),
)
