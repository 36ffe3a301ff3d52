"""No way leads to an address that is not public. All 10,000 cases are in benchmarks/targets.py."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from tests.hostile.registry import SPECIAL_4, SPECIAL_6, is_public
from tests.hostile.targets import make_cases, recorded, run


def test_nothing_connects_to_an_address_that_is_not_public() -> None:
    cases = make_cases(700, seed=20)
    result = run(cases)
    assert [(cases[number], address) for number, address in result.not_public] == []
    assert sum(result.ends.values()) == len(cases)
    assert result.connected > len(cases) // 4  # or the record would prove nothing


def test_the_recorder_lets_no_connection_through() -> None:
    attempts: list[tuple[int, str]] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, recorded(attempts):
        with socket.socket() as caller, pytest.raises(ConnectionRefusedError):
            caller.connect(listener.getsockname())
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert attempts == [(-1, "127.0.0.1")]
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as caller:
        caller.connect(listener.getsockname())  # as before


def test_the_reference_refuses_whole_special_networks() -> None:
    exceptions = ("192.0.0.9", "192.0.0.10")
    for network in (*SPECIAL_4, *SPECIAL_6):
        first = str(network[0])
        if first not in exceptions and network.version == 4:
            assert not is_public(first), network
    outside = (
        "::1",
        "fe80::1",
        "fc00::1",
        "4000::1",
        "2001:db8::1",
        "2002:a00::1",
        "64:ff9b::7f00:1",
        "ff0e::1",
    )
    assert not any(map(is_public, outside))
    assert all(map(is_public, ("1.1.1.1", "2606:4700::1111", "2002:101:101::1", "64:ff9b::101:101")))
    assert not is_public(str(ipaddress.IPv6Address("2001:0:101:101::f5ff:fffe")))  # Teredo of 10.0.0.1
