"""The disk engine: knows arrays and bytes, not URLs.

`env` is the only door to the file system; everything else here is built on it.
"""
