"""Group names to multicast addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.config import NetworkConfig
from intergroup_core.errors import ConfigError
from intergroup_core.runtime.address import GroupAddress, group_address, hashed_address


@given(st.text(min_size=1))
def test_every_name_hashes_into_the_organisations_scope_and_to_a_high_port(group: str) -> None:
    address = hashed_address(group)
    assert IPv4Address(address.host) in IPv4Network("239.192.0.0/14")
    assert 0x8000 <= address.port <= 0xFFFF


def test_a_name_hashes_to_the_same_address_in_every_release() -> None:
    assert hashed_address("prices") == GroupAddress("239.194.58.214", 59359)


def test_names_spread_over_addresses_and_ports() -> None:
    addresses = {hashed_address(f"group-{number}") for number in range(1_000)}
    assert len(addresses) == 1_000
    assert len({address.host for address in addresses}) > 950
    assert len({address.port for address in addresses}) > 950


def test_options_replace_either_half() -> None:
    hashed = hashed_address("prices")
    assert group_address("prices", NetworkConfig(address="239.1.2.3")) == GroupAddress("239.1.2.3", hashed.port)
    assert group_address("prices", NetworkConfig(port=4_000)) == GroupAddress(hashed.host, 4_000)


@pytest.mark.parametrize("address", ["10.0.0.1", "nowhere", "ff02::1"])
def test_an_address_that_is_not_ipv4_multicast_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.address.*multicast"):
        group_address("prices", NetworkConfig(address=address))
