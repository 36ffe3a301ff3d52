"""A crawl to look at in a browser, live: a process of its own that reads a job and speaks to its crawl through the socket.

    browser ─► guard: Host, Origin, token ─► app: pages ─► watcher: status and history ─► overview, as server-sent events
                                                      └──► lists: SQL with bounds; controls ─► JOB/control.sock

`server` begins it, `guard` decides who is answered, `app` has the pages, `watcher` looks at the job once for all who look on,
`overview` is what they see first, `lists` and `hosts` the rest, `metrics` what Prometheus reads, `shell` what all pages have around them. Pictures and escaping are those of
`barkspider.report`. What was crawled is data: it is escaped, and never shown as a page.
"""
