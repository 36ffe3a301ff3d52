import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.settings import Network
from barkspider.fetch.addresses import SPECIAL, AddressRules

OPEN = AddressRules(Network(), contact="a@b.example")

NAMED = {
    "unspecified": ["0.0.0.0", "::"],
    "this network": ["0.0.0.1", "0.255.255.255"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1"],
    "private": ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
    "unique local": ["fc00::", "fd12:3456::1", "fdff:ffff::1"],
    "behind carriers": ["100.64.0.0", "100.127.255.255"],
    "link-local": ["169.254.0.0", "169.254.255.255", "fe80::1", "febf::1"],
    "site-local": ["fec0::1", "feff::1"],
    "metadata of clouds": ["169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe"],
    "protocols": ["192.0.0.0", "192.0.0.9", "192.0.0.170", "2001:1::1", "2001:4:112::1", "2001:20::1", "2001:30::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"],
    "benchmarking": ["198.18.0.0", "198.19.255.255", "2001:2::1"],
    "relays and sinks": ["192.88.99.1", "192.31.196.1", "192.52.193.1", "192.175.48.1", "2620:4f:8000::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "254.0.0.1"],
    "broadcast": ["255.255.255.255"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:a9fe:a9fe"],
    "IPv4-compatible": ["::127.0.0.1", "::10.0.0.1", "::8.8.8.8"],
    "IPv4-translated": ["::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "64:ff9b::168.63.129.16", "64:ff9b::224.0.0.1"],
    "NAT64 for local use": ["64:ff9b:1::a00:1", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::1"],
    "6to4": ["2002:7f00:1::", "2002:a00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1"],
    "Teredo": ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1"],
    "ISATAP": ["2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "2606:4700::5efe:169.254.169.254"],
    "discarded": ["100::1", "100:0:0:1::1"],
    "segment routing": ["5f00::1"],
    "not assigned": ["64:ff9c::1", "1fff::1", "4000::1", "7fff::1", "8000::1", "e000::1", "fe00::1"],
    "zones": ["fe80::1%eth0", "fe80::1%1", "2606:4700::1111%eth0", "::1%lo"],
}  # fmt: skip

PUBLIC = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1", "2606:4700::1111", "3ffe::1", "2606:4700::5efe:8.8.8.8", "64:ff9b::808:808"]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "address"), [(word, text) for word, texts in NAMED.items() for text in texts]
)
def test_what_is_not_public_is_refused(word: str, address: str) -> None:
    assert OPEN.refusal(address) == "refused_address", word


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_need_a_contact(address: str) -> None:
    assert OPEN.refusal(address) == ""
    assert AddressRules(Network(), contact="").refusal(address) == "no_contact"


@pytest.mark.parametrize("text", SPECIAL)
def test_a_special_network_is_refused_from_end_to_end_and_has_a_word(text: str) -> None:
    network = ipaddress.ip_network(text)
    inside = [
        address
        for address in (network[0], network[-1])
        if address not in ipaddress.ip_network("64:ff9b::/96")
    ]
    assert {OPEN.refusal(str(address)) for address in inside} == {"refused_address"}
    assert SPECIAL[text]


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_judged_like_itself(address: ipaddress.IPv4Address) -> None:
    alone = OPEN.refusal(str(address))
    for form in (f"64:ff9b::{address}", f"2606:4700::5efe:{address}", f"2606:4700::200:5efe:{address}"):
        assert OPEN.refusal(form) == alone
    for form in (
        f"::ffff:{address}",
        f"::{address}",
        f"64:ff9b:1::{address}",
        f"2002:{int(address) >> 16:x}::",
    ):
        assert OPEN.refusal(form) == "refused_address"


@settings(deadline=None)
@given(st.ip_addresses())
def test_nothing_is_public_that_python_holds_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    nat64 = address in ipaddress.ip_network("64:ff9b::/96")
    if not nat64 and (
        address.is_private or address.is_multicast or address.is_reserved or address.is_loopback
    ):
        assert OPEN.refusal(str(address)) == "refused_address"


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "127.0.0.1 ", "[::1]", "8.8.8.8%eth0", "010.8.8.8", "8.8.8.8\n", "１.１.１.１", "8.8.8.8/32"]
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    assert OPEN.refusal(text) == "refused_address"


def test_named_networks_are_opened_and_ports_mapped() -> None:
    rules = AddressRules(
        Network(allow=("127.0.0.0/8",), ports=("127.5.0.0/16:80=8080", "::1/128:80=9090")), contact=""
    )
    assert rules.refusal("127.200.1.1") == ""
    assert rules.refusal("10.0.0.1") == "refused_address"
    assert [rules.port("127.5.6.7", 80), rules.port("127.6.6.7", 80), rules.port("::1", 80)] == [
        8080,
        80,
        9090,
    ]


def test_a_network_that_is_opened_opens_no_other_way_to_it() -> None:
    rules = AddressRules(Network(allow=("10.0.0.0/8", "fe80::/10")), contact="a@b.example")
    assert [rules.refusal(text) for text in ("10.0.0.1", "fe80::1")] == ["", ""]
    for text in ("::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::", "fe80::1%eth0"):
        assert rules.refusal(text) == "refused_address"
