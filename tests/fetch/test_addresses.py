import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.settings import Network
from barkspider.fetch import AddressRules

OPEN = AddressRules(Network(), contact="a@b.example")

NOT_PUBLIC = ["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert OPEN.refusal(address) == "refused_address"


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_need_a_contact(address: str) -> None:
    assert OPEN.refusal(address) == ""
    assert AddressRules(Network(), contact="").refusal(address) == "no_contact"


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_judged_like_itself(address: ipaddress.IPv4Address) -> None:
    for form in (f"::ffff:{address}", f"64:ff9b::{address}"):
        if OPEN.refusal(str(address)):
            assert OPEN.refusal(form) == "refused_address"


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "127.0.0.1 ", "[::1]"]
)
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
