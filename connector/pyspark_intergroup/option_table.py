"""Every option: what it is for, its default and its meaning. The documentation is made from this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """What takes an option."""

    ALL = "all"
    READS = "reads"
    STREAMS = "streams"
    """That are read."""
    BATCH = "batch reads"
    WRITES = "writes"
    BATCH_WRITES = "batch writes"


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


GROUP = _of(
    Scope.ALL,
    (
        "group",
        "required",
        "Name of the group. A read may name several, separated by commas; a batch read of a `path` needs none and "
        "reads the groups it finds there. A write of rows with a column `group_name` needs none either: rows that "
        "have null in it go to this one.",
    ),
)
WHAT = _of(
    Scope.READS,
    (
        "delivery",
        "`rto`; of a `path` what its logs have",
        "`uu` (unordered), `rso` (in each sender's order) or `rto` (in one order everywhere).",
    ),
    (
        "isolation",
        "`committed` in `rto`, `uncommitted` in `rso` and `uu`",
        "`committed` has the rows of a transaction where it was decided, all at once, and none of one that is open or "
        "void; `uncommitted` has them where they were sent, and is all there is in `rso` and `uu`. `txn` is filled in "
        "both.",
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
SINK = _of(
    Scope.WRITES,
    (
        "encode",
        "`raw` where the columns allow it, else `arrow`",
        "What a row becomes: its `value`, with `key` and `headers` (`raw`), or a record of all its columns, as the "
        "`valueFormat` of a read takes it: an Arrow IPC stream of one row (`arrow`) or a JSON object (`json`). "
        "`group_name` is never part of it.",
    ),
    (
        "transactional",
        "`true`",
        "Whether the rows of a batch become visible all at once, and once, whatever is tried again; if not, they are "
        "sent as they come, and what is tried again is sent again.",
    ),
    (
        "ack",
        "`majority`",
        "How far rows must have come before a task ends, and their commit before the batch does: `sent`, `delivered` "
        "(in this site's log), `k:N` (in those of N further sites), `majority` (of more than half of the sites that "
        "keep the group's log) or `all` (of every live one).",
    ),
    ("ackTimeout", "`30s`", "How long that may take before the task, or the commit, fails."),
    (
        "transactionTimeout",
        "`1h`",
        "How long after its first row, in the group's time, a transaction may still be committed; 7 days at most.",
    ),
    (
        "sendFrom",
        "`executors`",
        "Whose agent sends: that of each executor, which joins the group, or the driver's alone (`driver`), for "
        "executors that multicast does not reach. Rows then travel with the tasks' results: 16 MB of a task at most.",
    ),
) + _of(
    Scope.BATCH_WRITES,
    (
        "txnAppId",
        "a random one",
        "Name under which batch writes are counted, so that one that was committed is not done again: for a write in "
        "`foreachBatch`, of which one at a time is under way. With `txnVersion`.",
    ),
    (
        "txnVersion",
        "none",
        "Number of the batch, such as the batch id of `foreachBatch`: each is higher than those before it. What was "
        "committed under it or a higher one is skipped.",
    ),
)
SITE = _of(
    Scope.ALL,
    ("config", "the defaults", "TOML file of settings, such as a copy of `conf/lan.toml`; options below go before it."),
    ("interface", "the default route's, else loopback", "Name or address of the network interface."),
    ("address", "hashed from the group's name", "Multicast address of the group."),
    ("port", "hashed from the group's name", "UDP port of the group."),
    ("ttl", "`1`", "Routers that a multicast may cross."),
    ("transport", "`multicast`", "How members reach each other; `multicast` is all there is for now."),
    ("peers", "none", "Addresses of members, for a transport that needs them; none does for now."),
    ("quorum", "`none`", "Sites that a component needs to send: `none`, a number, `majority` or `all`."),
    (
        "agent",
        "the site's own",
        "Directory (`INTERGROUP_HOME`) of the agent to use; an absolute path. Of a write also on executors' machines.",
    ),
    ("advertise", "the interface's", "Address at which other sites and executors reach this site's logs."),
    (
        "logDir",
        "the agent's",
        "Directory for the logs of groups that a site has nothing of yet: an absolute path, in which each site has one "
        "of its own.",
    ),
    ("retentionBytes", "`1g`", "Beyond this a log loses its oldest files, unless somebody connected reads them."),
    ("retentionTime", "`24h`", "Files of a log whose last entry is older go, with the same exception."),
    ("security", "`off`", "Protection of what is sent; `off` is all there is for now."),
    ("keyFile", "none", "File of this site's key; not used while `security` is `off`."),
    ("trustFile", "none", "File of the keys that are trusted; not used while `security` is `off`."),
) + _of(
    Scope.READS,
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
        "slowReader",
        "`spill`",
        "A reader that falls behind finds all in the log (`spill`), holds up the senders (`block`), or skips (`gap`).",
    ),
)

SECTIONS: Mapping[str, tuple[Option, ...]] = {
    "What is read": GROUP + WHAT,
    "Where it begins and ends": WHERE,
    "Rows and columns": ROWS,
    "Values": VALUES,
    "Pace and partitions": PACE,
    "What is written, and how": SINK,
    "The site and its network": SITE,
}
OPTIONS: tuple[Option, ...] = tuple(option for section in SECTIONS.values() for option in section)
_OF_WRITES = (Scope.WRITES, Scope.BATCH_WRITES)
READ_OPTIONS = tuple(option for option in OPTIONS if option.scope not in _OF_WRITES)
WRITE_OPTIONS = tuple(option for option in OPTIONS if option.scope in (Scope.ALL, *_OF_WRITES))
