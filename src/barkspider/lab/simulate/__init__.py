"""Strategies tried on a stored web, to choose one before a crawl begins. No network, no clock.

`lab.webgraph` reads a graph and divides it into sites; `repeats` draws seeds and sums repetitions up. From there:

- `order`: which page comes next. Compiled loops (`kernels`) replay each strategy, `quality` says what the pages are
  worth in the order found.
- `budget`: what budgets cost and keep out. The live crawl's BEAST and what it is measured against (`queues`) crawl a
  web with spam farms (`farms`).
- `parallel`: how several processes share the work. `partitions` divides the web, compiled loops (`parallel_kernels`)
  crawl it in each mode, `parallel_results` sums repetitions up.

`papers` and `parallel_tables` put the results beside the printed ones. What decides is imported from `frontier`.
"""
