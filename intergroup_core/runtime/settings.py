"""Reads settings from a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from intergroup_core.errors import ConfigError

MAX_SETTINGS_BYTES = 1_000_000
"""A larger file is not one of settings."""


def read_settings(path: str | PathLike[str]) -> str:
    """The text of a settings file, or a ConfigError that says why there is none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_SETTINGS_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read settings from {path} ({error.strerror}); name a TOML file, such as a copy of conf/lan.toml"
        ) from error
    if len(content) > MAX_SETTINGS_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_SETTINGS_BYTES} bytes; name a TOML file of settings")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text; name a TOML file of settings") from error
