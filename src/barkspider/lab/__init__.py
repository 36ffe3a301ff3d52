"""The laboratory: what a crawl does not need, and people do who study crawls. It installs with the extra `lab`.

`synthweb` is a web that is computed and served on loopback, `simulate` tries strategies on stored webs, `papers` puts
printed figures beside ours. `webgraph` holds a graph of pages for both, `generate` makes up graphs of domains.
"""
