"""What makes structures on disk survive together.

    every structure: prepare ─► `manifest`, replaced in one step ─► every structure: committed
    what happens until then ─► `journal` ─ after a crash: read again

A structure makes its state durable (`prepare`), one small file is replaced, and only then is anything deleted
(`committed`). After a crash a `Store` opens exactly at the last commit. `snapshot` is a structure for what its owner has in
RAM, `log` one for rows of numbers that are only added; `verify` checks all of it and
changes nothing, `search` looks for a few bytes in all of it. `copies` keeps copies of the last commit elsewhere, in a store
that `remote` is the door to; `lending` lets those who only read have files from there.
"""
