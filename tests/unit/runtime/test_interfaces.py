"""Finding an interface; loopback is there on every host."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from intergroup_core.errors import NetworkUnavailable
from intergroup_core.runtime import interfaces as module
from intergroup_core.runtime.interfaces import Interface, default_route_interface, interfaces, resolve_interface

LOOPBACK = Interface(name="lo", index=1, address="127.0.0.1", mtu=65_536, up=True, loopback=True, multicast=False)
ETHERNET = Interface(name="eth0", index=2, address="10.0.0.7", mtu=1_500, up=True, loopback=False, multicast=True)

HEADING = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


def a_host(monkeypatch: pytest.MonkeyPatch, *present: Interface, default: str | None = None) -> None:
    monkeypatch.setattr(module, "interfaces", lambda: list(present))
    monkeypatch.setattr(module, "default_route_interface", lambda: default)


def routes(monkeypatch: pytest.MonkeyPatch, path: Path, *lines: str) -> None:
    path.write_text(HEADING + "".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(module, "_ROUTES", path)


def test_loopback_is_among_this_hosts_interfaces() -> None:
    assert any(interface.loopback and interface.address == "127.0.0.1" for interface in interfaces())


@pytest.mark.parametrize("wanted", ["lo", "127.0.0.1"])
def test_loopback_is_found_by_name_and_by_address(wanted: str) -> None:
    found = resolve_interface(wanted)
    assert (found.name, found.address, found.loopback) == ("lo", "127.0.0.1", True)


def test_without_a_wish_it_is_the_default_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    a_host(monkeypatch, LOOPBACK, ETHERNET, default="eth0")
    assert resolve_interface("") == ETHERNET


def test_without_a_default_route_it_is_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    a_host(monkeypatch, ETHERNET, LOOPBACK)
    assert resolve_interface("") == LOOPBACK


def test_an_unknown_interface_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(NetworkUnavailable, match=r"no interface.*'wlan9'.*network\.interface.*lo \(127\.0\.0\.1\)"):
        resolve_interface("wlan9")


def test_an_interface_that_is_down_is_an_error_that_says_how_to_bring_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    a_host(monkeypatch, LOOPBACK, dataclasses.replace(ETHERNET, up=False))
    with pytest.raises(NetworkUnavailable, match="ip link set eth0 up"):
        resolve_interface("eth0")


def test_an_interface_without_multicast_is_an_error_that_says_how_to_switch_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_host(monkeypatch, LOOPBACK, dataclasses.replace(ETHERNET, multicast=False))
    with pytest.raises(NetworkUnavailable, match="ip link set eth0 multicast on"):
        resolve_interface("10.0.0.7")


def test_an_interface_without_an_address_is_an_error_that_says_how_to_give_it_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_host(monkeypatch, LOOPBACK)
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    with pytest.raises(NetworkUnavailable, match=r"eth0 has no IPv4 address.*ip addr add"):
        resolve_interface("eth0")


def test_the_default_route_with_the_least_metric_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    routes(
        monkeypatch,
        tmp_path / "route",
        "wlan0\t00000000\t0100000A\t0003\t0\t0\t600\t00000000\t0\t0\t0",
        "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0",
        "eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
    )
    assert default_route_interface() == "eth0"


def test_a_default_route_that_is_down_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    routes(monkeypatch, tmp_path / "route", "eth0\t00000000\t0100000A\t0002\t0\t0\t0\t00000000\t0\t0\t0")
    assert default_route_interface() is None
