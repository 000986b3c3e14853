from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from intergroup_core import Config, ConfigError
from intergroup_core import config as settings
from intergroup_core.bounds import settings_of
from intergroup_core.config import HEADER_BYTES, SECTIONS, GroupConfig, SendConfig
from intergroup_core.presets import PRESETS
from intergroup_core.wire import header

CONF = Path(__file__).parents[2] / "conf"


def refusal(tree: dict[str, Any]) -> str:
    """What Config says about settings that it must refuse."""
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping(tree)
    return str(caught.value)


def test_nothing_given_means_the_defaults() -> None:
    assert Config.from_mapping({}) == Config() == Config.lan()


def test_what_is_given_replaces_only_itself() -> None:
    config = Config.from_mapping({"send": {"bundle_bytes": 60_000}, "network": {"interface": "eth0"}})
    assert config.send == SendConfig(bundle_bytes=60_000)
    assert config.network.interface == "eth0"
    assert config.repair == Config().repair


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_its_commented_file_says(name: str) -> None:
    assert Config.load(CONF / f"{name}.toml") == Config.preset(name)


def test_every_preset_has_a_file_and_every_file_a_preset() -> None:
    assert {path.stem for path in CONF.glob("*.toml")} == set(PRESETS)


def test_the_lan_file_names_every_setting() -> None:
    tree = tomllib.loads((CONF / "lan.toml").read_text())
    assert {name: list(section) for name, section in tree.items()} == {
        name: [setting.name for setting in settings_of(kind)] for name, kind in SECTIONS.items()
    }


@pytest.mark.parametrize("name", ["wan", "test"])
def test_a_preset_names_only_what_differs_from_the_defaults(name: str) -> None:
    for section, values in PRESETS[name].items():
        for setting in settings_of(SECTIONS[section]):
            assert values.get(setting.name, ...) != setting.default, f"{section}.{setting.name}"


def test_presets_are_methods_too() -> None:
    assert Config.wan() == Config.preset("wan")
    assert Config.test() == Config.preset("test")
    assert Config.wan().send.keepalive_idle_ms == 500
    assert Config.test().group.frame_bytes == 256


def test_an_unknown_preset_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'moon'.*lan, wan, test"):
        Config.preset("moon")


def test_an_unknown_section_names_the_nearest() -> None:
    assert refusal({"sned": {}}) == "there is no section 'sned'; did you mean [send]?"


def test_an_unknown_setting_names_the_nearest() -> None:
    assert "send.bundel_bytes; did you mean send.bundle_bytes?" in refusal({"send": {"bundel_bytes": 1}})


def test_a_setting_in_the_wrong_section_names_the_right_one() -> None:
    assert "repair.bundle_bytes; did you mean send.bundle_bytes?" in refusal({"repair": {"bundle_bytes": 1}})


def test_a_name_that_two_sections_have_stays_in_its_own() -> None:
    assert "did you mean repair.bandwidth?" in refusal({"repair": {"bandwith": 1}})


@pytest.mark.parametrize("value", [5, "fast", [1], None])
def test_a_section_must_be_a_table(value: object) -> None:
    assert f"send is {value!r}; it must be a section" in refusal({"send": value})


@pytest.mark.parametrize(
    ("section", "name", "value", "allowed"),
    [
        ("group", "frame_bytes", 127, "a whole number from 128 to 64_952"),
        ("group", "frame_bytes", 64_953, "a whole number from 128 to 64_952"),
        ("group", "frame_bytes", 1_400.0, "a whole number from 128 to 64_952"),
        ("group", "frame_bytes", "1400", "a whole number from 128 to 64_952"),
        ("group", "frame_bytes", True, "a whole number from 128 to 64_952"),
        ("group", "clock_bound_ms", math.nan, "a number from 1 to 86_400_000"),
        ("group", "clock_bound_ms", math.inf, "a number from 1 to 86_400_000"),
        ("send", "bandwidth_cut", 1, "a number from 0.1 to 0.99"),
        ("repair", "alpha", False, "a number from 0.01 to 1"),
        ("repair", "backoff_limit", -1, "a whole number from 0 to 12"),
        ("report", "room_bytes", None, "a whole number from 10_000 to 10_000_000_000"),
        ("network", "offload", 1, "true or false"),
        ("network", "offload", "yes", "true or false"),
        ("network", "interface", 5, "text"),
        ("network", "ttl", 256, "a whole number from 0 to 255"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_what_is_allowed(
    section: str, name: str, value: object, allowed: str
) -> None:
    assert refusal({section: {name: value}}) == f"{section}.{name} is {value!r}; it must be {allowed}"


def test_a_whole_number_does_for_a_number() -> None:
    assert Config.from_mapping({"report": {"busy_ms": 5}}).report.busy_ms == 5


@pytest.mark.parametrize(("section", "kind"), SECTIONS.items())
def test_every_setting_takes_its_bounds_and_nothing_beyond(section: str, kind: type) -> None:
    for setting in settings_of(kind):
        if setting.between is not None:
            assert setting.takes(setting.kind(setting.between.low)), f"{section}.{setting.name}"
            assert setting.takes(setting.kind(setting.between.high)), f"{section}.{setting.name}"
            assert not setting.takes(setting.kind(setting.between.low - 1)), f"{section}.{setting.name}"
            assert not setting.takes(setting.kind(setting.between.high + 1)), f"{section}.{setting.name}"


@pytest.mark.parametrize(("section", "kind"), SECTIONS.items())
def test_every_number_is_bounded(section: str, kind: type) -> None:
    for setting in settings_of(kind):
        assert setting.between is not None or setting.kind in {bool, str}, f"{section}.{setting.name}"


def test_the_table_of_sections_is_the_config() -> None:
    assert list(SECTIONS) == [field.name for field in dataclasses.fields(Config)]
    assert {name: type(getattr(Config(), name)) for name in SECTIONS} == dict(SECTIONS)


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        ({"group": {"frame_bytes": 1_401}}, "group.frame_bytes is 1401; it must be a multiple of 8"),
        ({"group": {"frame_bytes": 128, "max_message_bytes": 8_000_000}}, "a message has at most 65000"),
        ({"send": {"bandwidth_start": 500e3}}, "send.bandwidth_min"),
        ({"send": {"bandwidth_max": 100e6}}, "send.bandwidth_max"),
        ({"send": {"keepalive_gap_us": 200e3}}, "send.keepalive_idle_ms"),
        ({"send": {"burst_bytes": 1_000}}, "at least group.frame_bytes (1400)"),
        ({"send": {"queue_bytes": 1_000_000}}, "at least group.max_message_bytes (8000000)"),
        ({"send": {"unstable_bytes": 8_000_000}}, "send.unstable_bytes is 8000000"),
        ({"repair": {"buffer_bytes": 1_000_000}}, "at least send.unstable_bytes (64000000)"),
        ({"report": {"busy_ms": 300.0}}, "at most report.idle_ms (250)"),
        ({"network": {"address": "10.0.0.1"}}, "it must be an IPv4 multicast address"),
        ({"network": {"address": "nowhere"}}, "it must be an IPv4 multicast address"),
        (
            {"group": {"frame_bytes": 128, "max_message_bytes": 1_000}, "send": {"bundle_bytes": 8_000_000}},
            "send.bundle_bytes is 8000000, which needs 100000 frames",
        ),
    ],
)
def test_settings_that_contradict_one_another_are_refused(tree: dict[str, Any], complaint: str) -> None:
    assert complaint in refusal(tree)


def test_the_largest_message_just_fits_the_unstable_cap() -> None:
    group = GroupConfig(frame_bytes=128, max_message_bytes=800)
    wire_bytes = 10 * 128
    fits = SendConfig(bundle_bytes=80, unstable_bytes=wire_bytes)
    assert Config(group=group, send=fits).send.unstable_bytes == wire_bytes
    with pytest.raises(ConfigError, match="at least 1280"):
        Config(group=group, send=dataclasses.replace(fits, unstable_bytes=wire_bytes - 1))


def test_settings_made_in_code_are_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"send\.burst_bytes is 0"):
        SendConfig(burst_bytes=0)
    with pytest.raises(ConfigError, match=r"report\.busy_ms"):
        dataclasses.replace(Config().report, busy_ms=-1)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Config().send.burst_bytes = 1  # type: ignore[misc]


def test_a_file_is_loaded_by_text_or_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[network]\nport = 40_000\n")
    assert Config.load(file) == Config.load(str(file)) == Config.from_mapping({"network": {"port": 40_000}})


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[send]\nburst = 1\n")
    with pytest.raises(ConfigError, match=r"in .*mine\.toml: there is no setting send\.burst; did you mean"):
        Config.load(file)
    file.write_text("[send\n")
    with pytest.raises(ConfigError, match=r"mine\.toml is not valid TOML: .*line 1"):
        Config.load(file)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml \(No such file or directory\); name a TOML file"):
        Config.load(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        Config.load(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml is not UTF-8 text"):
        Config.load(binary)
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match=r"huge\.toml is larger than 1000000 bytes"):
        Config.load(huge)


def test_the_header_is_as_large_as_the_wire_says() -> None:
    assert HEADER_BYTES == header.HEADER_BYTES
    assert settings.MAX_FRAMES < 1 << 16
