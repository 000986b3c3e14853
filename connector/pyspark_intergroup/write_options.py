"""The options of a write: parsed once, where Spark hands them over, and frozen everywhere else."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from intergroup_core.wire.labels import MAX_APPLICATION_BYTES, MAX_TIMEOUT_S, MAX_VERSION
from pyspark_intergroup.option_config import config_of
from pyspark_intergroup.option_names import given_write_options
from pyspark_intergroup.option_values import OptionValues, refused

ACKS = ("sent", "delivered", "majority", "all")
SEND_FROM = ("executors", "driver")
ENCODINGS = ("raw", "arrow", "json")
ACK_TIMEOUT_S = 30.0
TRANSACTION_TIMEOUT_S = 3_600
_SITES = re.compile("k:([1-9][0-9]{0,2})", re.ASCII)
"""As many digits as an agent takes."""
_VERSION = re.compile("[0-9]{1,16}", re.ASCII)
_OF_TRANSACTIONS = ("transactionTimeout", "txnAppId", "txnVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write was asked for; made by `of`, which checks it."""

    group: str | None = None
    """None where a column names a group for every row."""
    config: Config = field(default_factory=Config)
    agent: str | None = None
    """INTERGROUP_HOME of the agent to use; None for the site's own."""
    encode: str | None = None
    """raw, arrow or json; None for what the columns suggest."""
    transactional: bool = True
    ack: str = "majority"
    """sent, delivered, k:N, majority or all."""
    ack_timeout_s: float = ACK_TIMEOUT_S
    transaction_timeout_s: int = TRANSACTION_TIMEOUT_S
    send_from: str = "executors"
    application: str | None = None
    """Of a batch write that is not to be done twice; None for one that nobody can name again."""
    version: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
        values = OptionValues(given_write_options(options, streaming=streaming))
        transactional = values.boolean("transactional") is not False
        if not transactional:
            for name in _OF_TRANSACTIONS:
                if name in values:
                    raise ConfigError(
                        f"{name} is about transactions, and transactional is 'false'; leave one of them out"
                    )
        application, version = _application(values), _version(values)
        if (application is None) != (version is None):
            given, missing = ("txnVersion", "txnAppId") if application is None else ("txnAppId", "txnVersion")
            raise ConfigError(f"{given} is given and {missing} is not; give both, or leave it out")
        return cls(
            group=_group(values),
            config=config_of(values),
            agent=values.directory("agent"),
            encode=values.choice("encode", ENCODINGS),
            transactional=transactional,
            ack=_ack(values),
            ack_timeout_s=_ack_timeout(values),
            transaction_timeout_s=_transaction_timeout(values),
            send_from=values.choice("sendFrom", SEND_FROM) or "executors",
            application=application,
            version=version,
        )


def _group(values: OptionValues) -> str | None:
    groups = values.names("group")
    if groups is not None and len(groups) > 1:
        raise ConfigError(
            f"group is {values.given['group']!r:.60}; a write goes to one, or to those that a column group_name names"
        )
    return groups[0] if groups else None


def _ack(values: OptionValues) -> str:
    ack = (values.text("ack") or "majority").lower()
    if ack not in ACKS and not _SITES.fullmatch(ack):
        raise refused("ack", values.given["ack"], "sent, delivered, k:N for N further sites, majority or all")
    return ack


def _ack_timeout(values: OptionValues) -> float:
    seconds = values.seconds("ackTimeout") or ACK_TIMEOUT_S
    if seconds > MAX_TIMEOUT_S:
        raise refused("ackTimeout", values.given["ackTimeout"], "7 days (7d) at most")
    return seconds


def _transaction_timeout(values: OptionValues) -> int:
    seconds = values.seconds("transactionTimeout") or TRANSACTION_TIMEOUT_S
    if seconds > MAX_TIMEOUT_S:
        raise refused("transactionTimeout", values.given["transactionTimeout"], "7 days (7d) at most")
    return math.ceil(seconds)


def _application(values: OptionValues) -> str | None:
    name = values.text("txnAppId")
    if name is not None and (not name.isprintable() or len(name.encode()) > MAX_APPLICATION_BYTES):
        raise refused("txnAppId", name, f"1 to {MAX_APPLICATION_BYTES} bytes of printable text")
    return name


def _version(values: OptionValues) -> int | None:
    version = values.text("txnVersion")
    if version is None:
        return None
    if not _VERSION.fullmatch(version) or int(version) > MAX_VERSION:
        raise refused("txnVersion", version, f"a whole number from 0 to {MAX_VERSION}")
    return int(version)
