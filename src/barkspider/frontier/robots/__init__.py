"""What sites allow: each robots.txt asked for once, kept on disk, and put to URLs before they are fetched.

    URLs ─► `permits` ─ rules known ─► Ready
                ├─ unknown: the URLs wait in `rounds` (Q_R, Q_L)
                └─ their origins are `asks` (Q_D) ─► `origins` fetch each ─► `rules` ─► back to `permits`

`groups` packs the URLs of one origin into one row, because the answer is one set of rules. `origins` knows what is in RAM:
whose robots.txt is under way, what it said, what it refuses, and which are errands for other domains; `rules` reads an
answer and says for how long it counts. A `permit` is what is kept of one on disk.
"""
