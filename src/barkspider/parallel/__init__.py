"""One crawl by several processes, which divide it by pay-level domain, or in another way.

    supervisor ─ starts, watches, grants, ends ─► part 0 … part n-1     each: its own folder, journal, manifest, archive, socket
    part i: links of others ─► batch (i, number) ─ synced, then linked ─► inbox of j ─► part j: applied once

A `part` is the crawl that there is, in a process of its own, which owns some of the URLs (`frontier.ownership`); what
it finds for others it sends (`frontier.exchange`). `post` carries the batches, `turns` says whose turn it is at a
server that several processes ask. `division` makes the job of parts, and shares out what is meant for the whole;
`frozen` has what else a job is made with. The `supervisor` starts the parts again when they die, knows when nothing is
left anywhere, and speaks for all of them; `grants` says how many pages each may fetch, `summing` adds up what they
tell, and `metrics` says what it costs and loses to divide the crawl. `cluster` is all of this on many machines.
`resize` makes parts for another number of processes of those that there are, `generations` removes what these do not
need any more, and `carrying` takes batches to parts elsewhere that nobody here sees.
"""
