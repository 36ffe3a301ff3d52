"""The disk engine: knows arrays and bytes, not URLs.

Everything rests on `env`, the only door to the file system (over `calls`, which tests replace; `raw` is what it
writes from), and on `format`: headers, blocks, checksums. `columns` are the values of many rows, `kernels` the compiled
loops, `keyset` is a set of keys in RAM. Above that lie three packages, each with its own story:

- `drum`: IRLbot's DRUM, keys with values on disk, checked and updated in batches.
- `queue`: first in, first out, on disk.
- `store`: what makes any number of them survive together: one manifest, a journal, snapshots of what is in RAM.
"""
