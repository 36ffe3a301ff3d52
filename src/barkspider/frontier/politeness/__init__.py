"""Whom we may contact, and when.

    `hosts` ─ a pause ends ─► `roster` ─ its server is free ─► a request ─► outcome ─► `pauses` ─► the next pause

`hosts` has what is known of a host, its origins, its server, and the URLs queued for it; `roster` moves hosts from
state to state, `waiting` holds those in a pause; `pauses` says how long each is. `slots` says who may have one of the
requests that are under way at a time; where many wait for one thing, they are in `rotation` by domain. URLs that have
to wait longer than RAM should hold them are in `delays`: Q_W, on disk, in order of time.
`wildcards` finds domains whose DNS has an answer for any name, where many hosts count as one.
"""
