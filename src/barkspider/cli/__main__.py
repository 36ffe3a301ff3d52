"""`python -m barkspider.cli` is the `barkspider` program."""

from barkspider.cli import main

main()
