"""The options of a read: parsed once, where Spark hands them over, and frozen everywhere else.

Nothing here needs Spark, so that whoever plans and reads can be tried without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from intergroup_core.client.names import checked_name
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from intergroup_core.ids import ViewId
from intergroup_core.log.arrow import COLUMNS
from pyspark_intergroup.columns import METADATA_PREFIX, metadata_of
from pyspark_intergroup.option_config import config_of
from pyspark_intergroup.option_names import SINK_KEYS, check_names, given_options, is_for_streams
from pyspark_intergroup.option_values import OptionValues, refused
from pyspark_intergroup.points import AtTime, Earliest, End, Start, ending_point, starting_point, view_option

DELIVERIES = ("uu", "rso", "rto")
EXECUTORS = ("auto", "join", "fetch")
READ_LEVELS = ("local", "majority", "stable")
KINDS = ("data", "view", "gap")
COMMITTED, UNCOMMITTED = ISOLATIONS = ("committed", "uncommitted")
VALUE_FORMATS = ("arrow", "json", "msgpack")
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
FETCH_TIMEOUT_S = 30.0
CORRUPT_COLUMN = "_corrupt_record"
_SITES = re.compile("k:([1-9][0-9]{0,5})", re.ASCII)
_WITH_SCHEMA = ("valueFormat", "mode", "columnNameOfCorruptRecord")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a read was asked for; made by `of`, which checks it."""

    groups: tuple[str, ...]
    """Empty only with a path: all that is found there."""
    delivery: str | None = "rto"
    """None only with a path: what its logs have."""
    config: Config = field(default_factory=Config)
    agent: str | None = None
    """INTERGROUP_HOME of the agent to use; None for the site's own."""
    executors: str = "auto"
    fetch_timeout_s: float = FETCH_TIMEOUT_S
    starting: Start = field(default_factory=Earliest)
    ending: End | None = None
    """None for a stream, which does not end."""
    read_level: str = "stable"
    """local, k:N, majority or stable."""
    subscription: str | None = None
    max_rows_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_rows_per_trigger: int | None = None
    max_trigger_delay_s: float | None = None
    min_partitions: int = 1
    max_rows_per_partition: int | None = None
    fail_on_data_loss: bool = True
    columns: tuple[str, ...] = COLUMNS
    """Of the default schema; a user's schema has its own."""
    senders: tuple[str, ...] = ()
    """Names of those whose data rows are wanted; empty for all."""
    kinds: tuple[str, ...] = KINDS
    isolation: str | None = COMMITTED
    """None only with a path: by the delivery of its logs, `default_isolation`."""
    value_format: str = "json"
    mode: str = "PERMISSIVE"
    corrupt_column: str = CORRUPT_COLUMN
    pushdown: bool = False
    branch: ViewId | None = None
    path: str | None = None

    @property
    def include_views(self) -> bool:
        return "view" in self.kinds

    @classmethod
    def of(
        cls,
        options: Mapping[str, str],
        *,
        streaming: bool,
        schema_given: bool = False,
        user_columns: Sequence[str] = (),
    ) -> ReadOptions:
        """What options say; `user_columns` are the names in a user's schema."""
        values = OptionValues(given_options(options, streaming=streaming))
        if not schema_given:
            _refuse_what_needs_a_schema(values)
        path = _path(values)
        groups = _groups(values, path)
        delivery = values.choice("delivery", DELIVERIES) or (None if path is not None else "rto")
        min_rows, max_rows = values.whole("minRowsPerTrigger"), _max_rows(values)
        if min_rows is not None and max_rows is not None and min_rows > max_rows:
            raise ConfigError(
                f"minRowsPerTrigger is {min_rows} and maxRowsPerTrigger is {max_rows}; it must not be less"
            )
        starting = starting_point(values, groups=groups, delivery=delivery, streaming=streaming)
        ending = None if streaming else ending_point(values, groups=groups, delivery=delivery)
        _check_order(starting, ending)
        loss = values.boolean("failOnDataLoss")
        shows_kind = not schema_given or any(metadata_of(column) == "kind" for column in user_columns)
        if loss is False and not shows_kind:
            raise ConfigError(
                "failOnDataLoss is 'false', and the schema has no column _kind that would tell what is a gap; "
                "add _kind to it, or leave failOnDataLoss out"
            )
        return cls(
            groups=groups,
            delivery=delivery,
            config=config_of(values),
            agent=values.directory("agent"),
            executors=values.choice("executors", EXECUTORS) or "auto",
            fetch_timeout_s=values.seconds("fetchTimeout") or FETCH_TIMEOUT_S,
            starting=starting,
            ending=ending,
            read_level=_read_level(values, delivery, path),
            subscription=_subscription(values),
            max_rows_per_trigger=max_rows,
            max_bytes_per_trigger=values.size("maxBytesPerTrigger"),
            min_rows_per_trigger=min_rows,
            max_trigger_delay_s=_delay(values),
            min_partitions=values.whole("minPartitions") or 1,
            max_rows_per_partition=values.whole("maxRowsPerPartition"),
            fail_on_data_loss=loss is not False,
            columns=_columns(values, schema_given=schema_given),
            senders=values.names("senders") or (),
            kinds=_kinds(values, shows_kind=shows_kind),
            isolation=_isolation(values, delivery),
            value_format=values.choice("valueFormat", VALUE_FORMATS) or "json",
            mode=values.choice("mode", MODES) or "PERMISSIVE",
            corrupt_column=_corrupt_column(values),
            pushdown=values.boolean("pushdown") or False,
            branch=_branch(values, path),
            path=path,
        )


def check_for_some_read(options: Mapping[str, str]) -> None:
    """A ConfigError where options are wrong for streams and for batch reads, whatever their schema: so much can be said
    before it is known what they are for. Options without a group may be a write's, and are left to whoever reads."""
    check_names(options)
    keys = {name.lower() for name in options}
    if keys.isdisjoint(("group", "path")) or keys & SINK_KEYS:
        return
    _check_for_either(options, schema_given=not keys.isdisjoint(name.lower() for name in _WITH_SCHEMA))


def check_without_schema(options: Mapping[str, str]) -> None:
    """A ConfigError where options are wrong for streams and for batch reads of the default schema."""
    _check_for_either(options, schema_given=False)


def _check_for_either(options: Mapping[str, str], *, schema_given: bool) -> None:
    # What only one of the two takes says which it is.
    streaming = is_for_streams(options)
    user_columns = (f"{METADATA_PREFIX}kind",) if schema_given else ()
    try:
        ReadOptions.of(options, streaming=streaming, schema_given=schema_given, user_columns=user_columns)
    except ConfigError:
        with suppress(ConfigError):
            ReadOptions.of(options, streaming=not streaming, schema_given=schema_given, user_columns=user_columns)
            return
        raise


def asked_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the default schema that are asked for, before it is known what kind of read it is."""
    given = {name.lower(): value for name, value in options.items() if name.lower() == "columns"}
    return OptionValues(given).subset("columns", COLUMNS) or COLUMNS


def default_isolation(delivery: str) -> str:
    """Only in one order everywhere is there a place at which a transaction commits."""
    return COMMITTED if delivery == "rto" else UNCOMMITTED


def _refuse_what_needs_a_schema(values: OptionValues) -> None:
    for name in _WITH_SCHEMA:
        if name in values:
            raise ConfigError(
                f"{name} is about how columns are decoded from values, and without .schema(...) none are; "
                "give a schema, or leave it out"
            )


def _path(values: OptionValues) -> str | None:
    path = values.text("path")
    if path is None:
        return None
    scheme, separator, rest = path.partition(":")
    if separator and scheme == "file" and rest.startswith("/"):
        return "/" + rest.lstrip("/")
    if separator and rest.startswith("//"):
        raise refused("path", path, "a directory that every executor sees in its file system, without a scheme")
    return path


def _groups(values: OptionValues, path: str | None) -> tuple[str, ...]:
    groups = values.names("group")
    if groups is None and path is None:
        raise ConfigError('there is no group to read; name it with .option("group", NAME), several with commas')
    return groups or ()


def _max_rows(values: OptionValues) -> int | None:
    if "maxRowsPerTrigger" in values and "maxOffsetsPerTrigger" in values:
        raise ConfigError("maxRowsPerTrigger and maxOffsetsPerTrigger are two names of one option; give only one")
    return values.whole("maxRowsPerTrigger") or values.whole("maxOffsetsPerTrigger")


def _delay(values: OptionValues) -> float | None:
    delay = values.seconds("maxTriggerDelay")
    if delay is not None and "minRowsPerTrigger" not in values:
        raise ConfigError("maxTriggerDelay bounds how long minRowsPerTrigger waits; give that too, or leave it out")
    return delay


def _check_order(starting: Start, ending: End | None) -> None:
    match starting, ending:
        case AtTime(start), AtTime(end) if start > end:
            raise ConfigError("startingTimestamp is later than endingTimestamp; exchange them")


def _read_level(values: OptionValues, delivery: str | None, path: str | None) -> str:
    level = values.text("readLevel")
    only_local = "a path is read as it lies" if path is not None else "uu promises nothing of other sites"
    if level is None:
        return "local" if path is not None or delivery == "uu" else "stable"
    if level.lower() not in READ_LEVELS and not _SITES.fullmatch(level.lower()):
        raise refused("readLevel", level, "local, k:N for N further sites, majority or stable")
    if level.lower() != "local" and (path is not None or delivery == "uu"):
        raise ConfigError(f"readLevel is {level!r:.60} and {only_local}; it must be local, or left out")
    return level.lower()


def _subscription(values: OptionValues) -> str | None:
    name = values.text("subscription")
    return None if name is None else checked_name(name, "subscription")


def _columns(values: OptionValues, *, schema_given: bool) -> tuple[str, ...]:
    columns = values.subset("columns", COLUMNS)
    if columns is not None and schema_given:
        raise ConfigError(
            "columns is given, and a schema as well, which names its columns itself; leave one of them out "
            f"(in a schema, columns of the default schema begin with {METADATA_PREFIX})"
        )
    return COLUMNS if columns is None else columns


def _kinds(values: OptionValues, *, shows_kind: bool) -> tuple[str, ...]:
    """The kinds of rows that are wanted: where nobody could tell them apart, data rows alone."""
    views = values.boolean("includeViews")
    kinds = values.subset("kinds", KINDS)
    if kinds is not None and views is not None and views != ("view" in kinds):
        raise ConfigError(
            f"includeViews is {str(views).lower()!r} and kinds is {', '.join(kinds)!r}, which contradict each other; "
            "leave one of them out"
        )
    if not shows_kind:
        if views or (kinds is not None and kinds != ("data",)):
            raise ConfigError(
                f"{'includeViews' if views else 'kinds'} asks for rows that are not data, and the schema has no column "
                "_kind to tell them by; add _kind to it, or leave the option out"
            )
        return ("data",)
    wanted = KINDS if kinds is None else kinds
    return tuple(kind for kind in KINDS if kind in wanted and (kind != "view" or views is not False))


def _isolation(values: OptionValues, delivery: str | None) -> str | None:
    isolation = values.choice("isolation", ISOLATIONS)
    if isolation == COMMITTED and delivery not in ("rto", None):
        raise ConfigError(
            f"isolation is 'committed' and delivery is {delivery!r}, which has no order that a transaction could "
            "commit in; use rto, or uncommitted"
        )
    if isolation is None and delivery is not None:
        return default_isolation(delivery)
    return isolation


def _corrupt_column(values: OptionValues) -> str:
    name = values.text("columnNameOfCorruptRecord") or CORRUPT_COLUMN
    if metadata_of(name) is not None:
        raise refused(
            "columnNameOfCorruptRecord", name, "another name than one that a column of the default schema has"
        )
    return name


def _branch(values: OptionValues, path: str | None) -> ViewId | None:
    branch = view_option(values, "branch")
    if branch is not None and path is None:
        raise ConfigError("branch chooses among logs that lie at a path, and there is none; give path, or leave it out")
    return branch
