"""Named workloads with fixed seeds; see `__main__`."""
