"""DRUM, the Disk Repository with Update Management of IRLbot: keys with values, checked and updated in batches.

    feed ─► front set ─► filling ─► buckets ─ one is full ─► merge with Z, in a thread ─► results ─► owner

`repository` is the whole (`Drum`). Rows that are fed pass the `frontset`, which stops what it has just seen, and gather
in `filling`: RAM buffers, and beyond these the files of a generation of `buckets`. A `merge`, run by `merge_thread`, takes
a generation through the sorted cache Z (`known`) bucket by bucket; `values` compares rows with stored values and `update`
says what an update does to one. What comes out lies in `results` until it is taken. `blocks` are what all these files
consist of, `sizing` chooses buckets and buffers, `counters` count bytes and rows, `sweep` removes files.
"""
