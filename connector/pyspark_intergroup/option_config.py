"""The settings that options of a read make, on top of a settings file or the defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from intergroup_core.bounds import settings_of
from intergroup_core.config import SECTIONS, Config
from intergroup_core.errors import ConfigError
from pyspark_intergroup.option_values import OptionValues, refused

_SETTINGS: Mapping[str, tuple[str, str]] = {
    "interface": ("network", "interface"),
    "address": ("network", "address"),
    "port": ("network", "port"),
    "ttl": ("network", "ttl"),
    "quorum": ("group", "quorum"),
    "advertise": ("agent", "advertise"),
    "logDir": ("log", "directory"),
    "retentionBytes": ("log", "retention_bytes"),
    "retentionTime": ("log", "retention_s"),
    "slowReader": ("log", "slow_reader"),
}
"""The setting behind an option."""


def config_of(values: OptionValues) -> Config:
    """The settings of the file that `config` names, if one is, and what other options say instead."""
    _refuse_what_is_to_come(values)
    path = values.text("config")
    config = Config() if path is None else Config.load(path)
    for option in _SETTINGS:
        if option in values:
            config = _with_option(config, option, values)
    return config


def _with_option(config: Config, option: str, values: OptionValues) -> Config:
    section, name = _SETTINGS[option]
    value = _value(option, values)
    (setting,) = [setting for setting in settings_of(SECTIONS[section]) if setting.name == name]
    if not setting.takes(value):
        unit = {"retentionTime": " seconds", "retentionBytes": " bytes"}.get(option, "")
        raise refused(option, values.given[option], f"{setting.allowed}{unit}")
    try:
        changed = dataclasses.replace(getattr(config, section), **{name: value})
        return dataclasses.replace(config, **{section: changed})
    except ConfigError as error:
        # People gave an option; the setting behind it is not what they should look for.
        raise ConfigError(str(error).replace(f"{section}.{name} ", f"{option} ")) from None


def _value(option: str, values: OptionValues) -> object:
    match option:
        case "retentionBytes":
            return values.size(option)
        case "retentionTime":
            return values.seconds(option)
        case "logDir":
            return values.directory(option)
        case "port" | "ttl":
            text = values.text(option) or ""
            return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
        case "slowReader" | "quorum":
            return (values.text(option) or "").lower()
        case _:
            return values.text(option)


def _refuse_what_is_to_come(values: OptionValues) -> None:
    for option, only in (("transport", "multicast"), ("security", "off")):
        value = values.text(option)
        if value is not None and value.lower() != only:
            raise ConfigError(f"{option} is {value!r:.60}; only {only} is possible for now")
    if "peers" in values:
        raise ConfigError("peers names members to reach by unicast, which is not possible yet; leave it out")
    for option in ("keyFile", "trustFile"):
        if option in values:
            raise ConfigError(f"{option} is for security other than off, which is not possible yet; leave it out")
