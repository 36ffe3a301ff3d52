"""Hosts that never answer: some take a connection and say nothing, some do not even take it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.hostile.server import bind


@contextmanager
def mute(addresses: Sequence[str]) -> Iterator[int]:
    """Listens on these addresses, all at the port that comes out, and accepts nobody.

    The system shakes hands for us on every other address. On the others there is no room to wait, so that a
    SYN is dropped as by a firewall.
    """
    with ExitStack() as stack:
        bound = [stack.enter_context(listener) for listener in bind(list(addresses))]
        for number, listener in enumerate(bound):
            listener.listen(128 if number % 2 else 0)
            if number % 2 == 0:
                for _ in range(2):
                    caller = stack.enter_context(socket.socket())
                    caller.setblocking(False)
                    caller.connect_ex(listener.getsockname())
        yield bound[0].getsockname()[1]
