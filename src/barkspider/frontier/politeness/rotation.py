"""Rotation: who waits for one thing, domain by domain, so that nobody is served more often for having many names."""

from __future__ import annotations

from typing import TypeVar

Item = TypeVar("Item")


class Rotation(dict[int, list[Item]]):
    """What waits, by the key of its pay-level domain. Domains go round in the order in which they came, and none has two
    turns in a row while another waits.

    >>> rotation = Rotation[str]()
    >>> for domain, item in ((1, "a"), (1, "b"), (1, "c"), (2, "d")):
    ...     rotation.push(domain, item)
    >>> rotation.first(), rotation.take(), rotation.take(), rotation.take()
    ((1, 'a'), 'a', 'd', 'b')
    >>> rotation.push(3, "e")
    >>> rotation.take(), rotation.take(), len(rotation)
    ('e', 'c', 0)
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last = 0  # whose turn was the last

    def push(self, domain: int, item: Item) -> None:
        """Let something wait behind the others of its domain."""
        line = self.get(domain)
        if line is None:
            self[domain] = [item]
        else:
            line.append(item)

    def first(self) -> tuple[int, Item]:
        """Whose turn it is, and its domain."""
        domain = self._turn()
        return domain, self[domain][0]

    def take(self) -> Item:
        """Take out whose turn it is."""
        self.last = domain = self._turn()
        line = self.pop(domain)
        item = line.pop(0)
        if line:
            self[domain] = line
        elif not self:
            self.clear()  # lets go of the table, which most servers have no use for
        return item

    def skip(self, domain: int) -> None:
        """Pass the turn of a domain, which is the one that `first` gave, on to the next."""
        self.last = domain
        self[domain] = self.pop(domain)

    def _turn(self) -> int:
        domain = next(iter(self))
        if domain == self.last and len(self) > 1:
            self[domain] = self.pop(domain)
            domain = next(iter(self))
        return domain
