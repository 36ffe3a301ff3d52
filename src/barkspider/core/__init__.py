"""Vocabulary that every other room shares: errors, units, settings, records and clocks.

`records` declares the columns of a URL, `batch` is many URLs at once, made of `texts`; `events` is what the frontier and the
engine say to each other. `settings` are those of a crawl, those of the network in `fetch_settings`, each `declared` in `units` that people write, with `credentials` for hosts of their own; `allotment` shares out their memory; `clock` is where time comes from,
`errors` the one tree of what is raised. Nothing here does I/O except `load`, which reads and writes settings files, and
`kernel_cache`, which finds a place for compiled kernels. `extras` says what to install for what needs more.
"""
