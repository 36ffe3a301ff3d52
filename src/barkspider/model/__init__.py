"""What a crawl needs, by the papers' formulas: pure functions of numbers.

`irlbot`, `exchange` and `ranking` hold the formulas of IRLbot, Parallel Crawlers and the paper on spam
avoidance, each named by its equation; `budgets` has what IRLbot lets a domain spend. `planner` puts them
together: from the parameters of a crawl to what it needs and what holds it back. `freshness` says how fresh copies of
pages are that change, by how often they are visited (Cho and Garcia-Molina), and how often they change.

Units are bytes, seconds, pages and URLs; KB, MB, GB and TB are decimal.
"""
