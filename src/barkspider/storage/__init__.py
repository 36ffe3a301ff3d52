"""The disk engine: knows arrays and bytes, not URLs.

Everything rests on `env`, the only door to the file system (over `calls`, which tests replace), and on
`format`: headers, blocks, checksums. Two structures keep data:

- `queue`: first in, first out, on disk; `segments` are its files, `items` its blocks.
- `drum`: IRLbot's DRUM. Rows are fed into `buckets` (`filling`), merged with the sorted cache Z (`known`) by `merge`
  in a thread (`merge_thread`), and come out as `results`; `kernels` are the compiled loops, `sizing` chooses buckets
  and buffers.

`manifest` commits any number of structures at once: a structure makes its state durable (`prepare`), one
small file is replaced, and only then is anything deleted (`committed`). After a crash a `Store` opens exactly
at the last commit. `keyset` is a set of keys in RAM.
"""
