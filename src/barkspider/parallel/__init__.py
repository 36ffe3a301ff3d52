"""One crawl by several processes, which divide it by pay-level domain.

    supervisor ─ starts, watches, grants, ends ─► part 0 … part n-1     each: its own folder, journal, manifest, archive, socket
    part i: links of others ─► batch (i, number) ─ synced, then linked ─► inbox of j ─► part j: applied once

A `part` is the crawl that there is, in a process of its own, which owns the domains of some slots; what it finds for
others it sends (`frontier.exchange`). `post` carries the batches, `turns` says whose turn it is at a server that several
processes ask. `division` makes the job of parts, and shares out what is meant for the whole. The `supervisor` starts the
parts again when they die, knows when nothing is left anywhere, and speaks for all of them; `grants` says how many pages each
may fetch, `summing` adds up what they tell.
"""
