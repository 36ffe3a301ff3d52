"""The papers' printed figures beside ours: `formulas` recomputes the tables that come from formulas, `comparison` is the form
in which it, the simulations and the live crawls give theirs.
"""
