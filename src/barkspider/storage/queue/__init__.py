"""A queue on disk: byte strings come out in the order in which they went in.

    append ─► items gather in RAM ─► a block at the end of the last segment ─► the first block of the first ─► pop

`disk_queue` is the queue, `segments` are its files, `items` its blocks.
"""
