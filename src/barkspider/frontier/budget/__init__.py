"""The stages of IRLbot on disk: which URLs are new, what their domains may spend, when they get their turn.

    links ─► `seen` ─► `star` ─► `beast` ─► `permits`
    domain edges ──────┘ ▲         │
                         └── Q_F ──┘

`star` counts who links to whom and gives each URL the budget of its domain (`model.budgets`: from ranks to budgets); with
`reputation` it goes by supporters instead of in-degree, and `domain_redirects` knows the domains that only lead to another.
Where other processes have URLs of the same domains, `hearsay` has what they told of them.
`beast` makes URLs wait for a queue in which their domain has budget left; `placement` is its kernel, and
`left_over` what it keeps of that on disk.
"""
