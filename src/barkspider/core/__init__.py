"""Vocabulary that every other room shares: errors, units, settings, records and clocks.

URLs: `records` declares the columns of one, `batch` is many at once, made of `texts`. `events` is what the frontier and the
engine say to each other.
Settings: `settings` are those of a crawl, those of the network in `fetch_settings`, of several processes in
`parallel_settings`, each `declared` with a default and in `units` that people write; `credentials` are for hosts of one's own.
`load` reads and writes files of them. `allotment` shares out the memory that they allow.
Beside these: `clock` is where time comes from, `errors` the one tree of what is raised, `kernel_cache` finds a place for
compiled kernels, `extras` says what to install for what needs more.

Nothing here does I/O but `load` and `kernel_cache`.
"""
