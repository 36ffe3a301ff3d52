"""The graph of pay-level domains, and who in it deserves to be crawled (Sparkman, Lee and Loguinov).

Edges come in batches (`importing` reads them from files), go through a sort on disk (`sorting`), lose self-loops and
duplicates, and end as two pairs of arrays on disk: the out-graph and, sorted once more by target, the in-graph
(`build`). `arrays` is one such file, `store` the folder of them. The edges of a running crawl are between keys of 64
bits, which `keyed` numbers first, and `naming` makes keys of names; `aliases` replaces domains that only redirect to
others.

Ranking goes two ways over the same compiled loops (`kernels`) and gives the same numbers:

- `methods`: the graph mapped into memory, all processors: IN, WIN, PageRank, supporters at distance D, Quick
  Visit, Bit Vector, TSE.
- `external`: the graph read from disk in order, a fixed amount of memory, bytes counted: all of these, and for the
  exact supporters at distance two SUPP2-A and SUPP2-B (`exact`).

`rank` runs one of them by its name. `costs` has the papers' formulas for what each moves, `compare` what tells rankings apart.
"""
