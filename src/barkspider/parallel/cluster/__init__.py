"""One crawl on many machines: Ray starts, watches and carries; what runs on a node is what runs on one machine.

    client ─► overseer ─ starts, hears, grants, ends ─► station 0 … station n-1     detached actors, a station a part
    station ─ a socket, a folder for mail ─► the process of its part
    station i ─ batches, turns, ranks ─► station j

The `overseer` is the supervisor, in an actor that outlives the client; `stations` says on which node a part lives. A `station` starts
the process of its part on its node and carries what that has for others: batches by way of the folder for mail (`mail`), turns at
servers by a socket (`wire` is the end of the process), which the part whose slot an address has gives out (`desk`). A part works
only while its `lease` holds. The `client` is what the command line uses. All speak to actors by `calls`: none need be there.
"""
