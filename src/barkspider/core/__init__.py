"""Vocabulary that every other room shares: errors, units, settings, records and clocks.

Nothing here does I/O except `load`, which reads and writes settings files.
"""
