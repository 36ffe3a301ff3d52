"""Attacks: hosts that are made to take from a crawl what others need, and ten honest hosts beside them.

`attack` says what an attack is, `good` what the honest hosts are, `table` lists all attacks; each of the other modules has
those of one kind. `test_attacks` runs a small form of each; `benchmarks hostile` runs each at full size and compares
the rate of the honest hosts with what it is without the attack.
"""
