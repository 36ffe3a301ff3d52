"""The name server, over UDP and with whatever may come in a packet."""

from __future__ import annotations

import socket
import struct

from hypothesis import given
from hypothesis import strategies as st

from barkspider.lab.synthweb import RunningWeb, Web, WebSpec
from barkspider.lab.synthweb.dns import respond

_WEB = Web(WebSpec(pages=1_000, hazards=frozenset({"dead", "wildcard_dns", "spam_farm"})))
_A, _AAAA, _MX = 1, 28, 15


def _query(name: str, kind: int = _A, group: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, group)


def _read(response: bytes | None) -> tuple[int, list[str]]:
    """Response code and addresses."""
    assert response is not None
    number, flags, questions, answers, _, _ = struct.unpack(">6H", response[:12])
    assert number == 0x1234
    assert flags & 0x8000
    assert questions == 1
    addresses = [socket.inet_ntoa(response[-4:])] if answers else []
    return flags & 15, addresses


def test_over_udp(running: RunningWeb) -> None:
    host = running.web.seeds()[0].split("/")[2]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect(("127.0.0.1", running.dns_port))
        client.send(b"x")
        client.send(_query(host))
        assert _read(client.recv(512)) == (0, [running.web.server(host)])
        client.send(_query("no.such.name"))
        assert _read(client.recv(512)) == (3, [])


def test_kinds_of_questions() -> None:
    host = _WEB.seeds()[0].split("/")[2]
    address = _WEB.server(host)
    assert address is not None
    assert address.startswith("127.")
    assert _read(respond(_WEB, _query(host.upper()))) == (0, [address])
    assert _read(respond(_WEB, _query(host, _AAAA))) == (0, [])
    assert _read(respond(_WEB, _query(host, _MX))) == (0, [])
    assert _read(respond(_WEB, _query(host, _A, 3))) == (3, [])
    assert _read(respond(_WEB, _query("x." + host))) == (3, [])
    # With an OPT record behind the question, as resolvers of today send it.
    extended = bytearray(_query(host) + b"\0\0\x29\x04\xd0\0\0\0\0\0\0")
    extended[11] = 1
    assert _read(respond(_WEB, bytes(extended))) == (0, [address])


def test_names_of_hazards() -> None:
    dead = _WEB.hazards["dead"].names
    assert _read(respond(_WEB, _query("www." + dead[0])))[1][0] not in _addresses()
    assert _read(respond(_WEB, _query("www." + dead[1]))) == (3, [])
    assert respond(_WEB, _query("www." + dead[2])) is None
    wild = _WEB.hazards["wildcard_dns"].names[0]
    assert _read(respond(_WEB, _query("any.name.at.all." + wild)))[1][0] in _addresses()
    farm = _WEB.hazards["spam_farm"].names[5]
    assert _read(respond(_WEB, _query("cheap-12ab." + farm)))[1][0] in _addresses()


def _addresses() -> set[str]:
    from barkspider.lab.synthweb.hazards import server_address

    return {server_address(number) for number in range(_WEB.spec.servers)}


def test_servers_are_shared(small: Web) -> None:
    hosts = [small.host_name(host) for host in range(len(small.tables.domain_of))]
    addresses = [small.server(host) for host in hosts]
    assert None not in addresses
    assert len(set(addresses)) > small.spec.servers * 0.8
    assert max(map(addresses.count, set(addresses))) > 3 * len(hosts) / small.spec.servers


@given(st.binary(max_size=80))
def test_nonsense_does_no_harm(packet: bytes) -> None:
    response = respond(_WEB, packet)
    assert response is None or response[:2] == packet[:2]


@given(st.data())
def test_damaged_queries_do_no_harm(data: st.DataObject) -> None:
    packet = bytearray(_query(_WEB.seeds()[0].split("/")[2]))
    packet[data.draw(st.integers(2, len(packet) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(packet)))
    for damaged in (bytes(packet), bytes(packet[:cut])):
        response = respond(_WEB, damaged)
        assert response is None or response[:2] == damaged[:2]
