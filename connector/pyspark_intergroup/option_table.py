"""Every option of a read: what it is for, its default and its meaning. The documentation is made from this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from intergroup_core.errors import ConfigError


class Scope(Enum):
    """The kind of read that takes an option."""

    READS = "reads"
    STREAMS = "streams"
    BATCH = "batch reads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option, as people read about it."""

    name: str
    scope: Scope
    default: str
    """As text of the page, with its own backticks."""
    meaning: str


def _of(scope: Scope, *rows: tuple[str, str, str]) -> tuple[Option, ...]:
    return tuple(Option(name=name, scope=scope, default=default, meaning=meaning) for name, default, meaning in rows)


WHAT = _of(
    Scope.READS,
    (
        "group",
        "required",
        "Name of the group; several, separated by commas. A batch read of a `path` needs none: it reads the groups it "
        "finds there.",
    ),
    (
        "delivery",
        "`rto`; of a `path` what its logs have",
        "`uu` (unordered), `rso` (in each sender's order) or `rto` (in one order everywhere).",
    ),
    (
        "isolation",
        "`committed` in `rto`, `uncommitted` in `rso` and `uu`",
        "`committed` leaves out rows of transactions that are open or were aborted; `uncommitted` has them, with `txn` "
        "filled, and is all there is in `rso` and `uu`.",
    ),
    (
        "readLevel",
        "`stable`; `local` in `uu` and of a `path`",
        "What must have a row before it is read: this site (`local`), N further sites that keep a log (`k:N`), more "
        "than half of them (`majority`), or every sender of the view and every live site that keeps a log (`stable`). "
        "Only `local` in `uu` and of a `path`.",
    ),
) + _of(
    Scope.BATCH,
    (
        "path",
        "none",
        "Directory of logs to read where they lie, without an agent; also given as `load(path)`. Every "
        "executor must see it.",
    ),
    (
        "branch",
        "the branch of this site",
        "Id of a view: of logs that a partition has split, read the branch that this view lies on; with `path` only.",
    ),
)
WHERE = _of(
    Scope.READS,
    (
        "startingOffsets",
        "`latest` for streams, `earliest` for batch reads",
        "`earliest`, `latest` (streams only), or JSON: an object of a cut per group, or what a checkpoint holds. "
        "A stream that has a checkpoint goes on from that instead.",
    ),
    (
        "startingTimestamp",
        "none",
        "Begin at this time instead: milliseconds since 1970, or ISO 8601, taken as UTC where it names no offset.",
    ),
    ("startingView", "none", "Begin with this view instead, by its id; of one group."),
) + _of(
    Scope.BATCH,
    ("endingOffsets", "`latest`", "Where to end: `latest`, or JSON as for `startingOffsets`."),
    ("endingTimestamp", "none", "End before this time instead, written as `startingTimestamp` is."),
)
ROWS = _of(
    Scope.READS,
    (
        "columns",
        "all",
        "Columns of the default schema, in the order wanted. Spark does not leave out columns by itself, and all of "
        "them cost more than half the speed of `value` alone. Not with `.schema(...)`, which names its own.",
    ),
    ("kinds", "all", "Kinds of rows, separated by commas: `data`, `view`, `gap`."),
    (
        "includeViews",
        "`true`; `false` with a `.schema(...)` that lacks `_kind`",
        "Whether changes of the membership are rows, at their place among the others.",
    ),
    ("senders", "all", "Names of senders, separated by commas: only their data rows, and all view and gap rows."),
    (
        "failOnDataLoss",
        "`true`",
        "Whether the query fails where rows are gone from every log before it read them; if not, a `gap` row stands in "
        "their place, for good. With `.schema(...)`, `false` needs `_kind` among the columns.",
    ),
) + _of(
    Scope.BATCH,
    (
        "pushdown",
        "`false`",
        "Whether filters on columns reach the logs. Spark asks for "
        "`spark.sql.python.filterPushdown.enabled=true` then, and fails without.",
    ),
)
VALUES = _of(
    Scope.READS,
    (
        "valueFormat",
        "`json`",
        "What the values are that columns of `.schema(...)` are decoded from: `json` (an object), `msgpack` (a map, or "
        "an array with an element for every column) or `arrow` (an IPC stream of one row). Only with `.schema(...)`.",
    ),
    (
        "mode",
        "`PERMISSIVE`",
        "What becomes of a value that is not as the schema says: nulls, and the value in the corrupt-record column "
        "where the schema has it (`PERMISSIVE`), no row (`DROPMALFORMED`), or the end of the query (`FAILFAST`). Only "
        "with `.schema(...)`.",
    ),
    (
        "columnNameOfCorruptRecord",
        "`_corrupt_record`",
        "Name of the column, string or binary, that gets malformed values. Only with `.schema(...)`.",
    ),
)
PACE = _of(
    Scope.STREAMS,
    (
        "maxRowsPerTrigger",
        "none",
        "Rows of a micro-batch, of all groups together. As all limits it is soft by one message or transaction, so "
        "that a batch always gets on.",
    ),
    ("maxOffsetsPerTrigger", "none", "The same under the name that Kafka's source has for it."),
    ("maxBytesPerTrigger", "none", "Bytes of a micro-batch, such as `64m`, `1g`, or a plain number."),
    ("minRowsPerTrigger", "none", "Wait until there are as many rows."),
    ("maxTriggerDelay", "none", "But no longer than this, such as `30s`, `5m`, `500ms`; with `minRowsPerTrigger`."),
    ("subscription", "none", "A name under which the logs are held for this query while it is away, up to retention."),
) + _of(
    Scope.READS,
    ("minPartitions", "1", "Partitions of a batch at least, where there are as many messages."),
    ("maxRowsPerPartition", "none", "Rows of a partition at most, beside the 16 MB that it has anyway."),
)
SITE = _of(
    Scope.READS,
    ("config", "the defaults", "TOML file of settings, such as a copy of `conf/lan.toml`; options below go before it."),
    ("interface", "the default route's, else loopback", "Name or address of the network interface."),
    ("address", "hashed from the group's name", "Multicast address of the group."),
    ("port", "hashed from the group's name", "UDP port of the group."),
    ("ttl", "`1`", "Routers that a multicast may cross."),
    ("transport", "`multicast`", "How members reach each other; `multicast` is all there is for now."),
    ("peers", "none", "Addresses of members, for a transport that needs them; none does for now."),
    ("quorum", "`none`", "Sites that a component needs to send: `none`, a number, `majority` or `all`."),
    ("agent", "the site's own", "Directory (`INTERGROUP_HOME`) of the agent to use; an absolute path."),
    ("advertise", "the interface's", "Address at which other sites and executors reach this site's logs."),
    (
        "executors",
        "`auto`",
        "How executors get rows: they `join` the group themselves, `fetch` from the driver's site, or join where they "
        "can (`auto`).",
    ),
    (
        "fetchTimeout",
        "`30s`",
        "How long an executor tries to get a range before its task fails, and how long other sites are asked for what "
        "the driver's site lacks before that is lost.",
    ),
    (
        "logDir",
        "the agent's",
        "Directory for the logs of groups that a site has nothing of yet: an absolute path, in which each site has one "
        "of its own.",
    ),
    ("retentionBytes", "`1g`", "Beyond this a log loses its oldest files, unless somebody connected reads them."),
    ("retentionTime", "`24h`", "Files of a log whose last entry is older go, with the same exception."),
    (
        "slowReader",
        "`spill`",
        "A reader that falls behind finds all in the log (`spill`), holds up the senders (`block`), or skips (`gap`).",
    ),
    ("security", "`off`", "Protection of what is sent; `off` is all there is for now."),
    ("keyFile", "none", "File of this site's key; not used while `security` is `off`."),
    ("trustFile", "none", "File of the keys that are trusted; not used while `security` is `off`."),
)

SECTIONS: Mapping[str, tuple[Option, ...]] = {
    "What is read": WHAT,
    "Where it begins and ends": WHERE,
    "Rows and columns": ROWS,
    "Values": VALUES,
    "Pace and partitions": PACE,
    "The site and its network": SITE,
}
READ_OPTIONS: tuple[Option, ...] = tuple(option for section in SECTIONS.values() for option in section)

_SINK_ONLY = "ack ackTimeout transactional transactionTimeout sendFrom txnAppId txnVersion encode".split()
_IGNORED = frozenset({"checkpointlocation"})
"""Put among the options of a read by those who give all their queries the same ones."""

_BY_KEY = {option.name.lower(): option for option in READ_OPTIONS}
_SINK_BY_KEY = {name.lower(): name for name in _SINK_ONLY}
SINK_KEYS = frozenset(_SINK_BY_KEY)


def is_for_streams(options: Mapping[str, str]) -> bool:
    """Whether there is one among them that only streams take; without one that only batch reads do, who can tell."""
    return any((option := _BY_KEY.get(key.lower())) and option.scope is Scope.STREAMS for key in options)


def given_options(options: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """The options of a read by the names they have in the table; Spark does not keep their case."""
    given: dict[str, str] = {}
    for key, value in options.items():
        if key.lower() in _IGNORED:
            continue
        option = _known(key)
        if not streaming and option.scope is Scope.STREAMS:
            raise ConfigError(f"{option.name} is for streams; leave it out of a batch read")
        if streaming and option.scope is Scope.BATCH:
            raise ConfigError(f"{option.name} is for batch reads; leave it out of a stream")
        if given.setdefault(option.name, value) != value:
            raise ConfigError(f"{option.name} is given twice, as {given[option.name]!r:.60} and {value!r:.60}")
    return given


def _known(key: str) -> Option:
    if option := _BY_KEY.get(key.lower()):
        return option
    if name := _SINK_BY_KEY.get(key.lower()):
        raise ConfigError(f"{name} is for writes; leave it out of a read")
    (nearest,) = get_close_matches(key.lower(), _BY_KEY, n=1, cutoff=0.0)
    raise ConfigError(f"there is no option {key!r:.60}; did you mean {_BY_KEY[nearest].name}?")
