"""Options of a read: what they become, and the sentence with which anything else is refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from intergroup_core.log.arrow import COLUMNS
from intergroup_core.log.cut_codec import cut_fields
from pyspark_intergroup.option_table import READ_OPTIONS, Scope
from pyspark_intergroup.options import KINDS, ReadOptions, default_isolation
from pyspark_intergroup.points import AtTime, Earliest, Latest
from tests.unit.connector.reads import CUT, VIEW, a_batch, a_stream


def test_a_stream_that_says_nothing_but_its_group() -> None:
    options = a_stream()
    assert options == ReadOptions(groups=("prices",), starting=Latest())
    assert (options.delivery, options.read_level, options.isolation) == ("rto", "stable", "committed")
    assert (options.executors, options.fetch_timeout_s, options.ending) == ("auto", 30.0, None)
    assert (options.columns, options.kinds, options.fail_on_data_loss) == (COLUMNS, KINDS, True)
    assert options.config == Config()


def test_a_batch_that_says_nothing_but_its_group_reads_everything() -> None:
    options = a_batch()
    assert (options.starting, options.ending) == (Earliest(), Latest())


def test_every_option_ends_where_it_belongs() -> None:
    options = a_stream(
        group=" prices , trades ",
        delivery="RSO",
        agent="/var/site",
        logDir="/var/logs",
        executors="fetch",
        fetchTimeout="500ms",
        readLevel="K:3",
        subscription="risk",
        maxOffsetsPerTrigger="1000",
        maxBytesPerTrigger="64m",
        minRowsPerTrigger="10",
        maxTriggerDelay="5m",
        minPartitions="4",
        maxRowsPerPartition="250",
        failOnDataLoss="False",
        columns="value, kind",
        senders="anna,bert",
        kinds="gap,data",
        isolation="uncommitted",
    )
    assert options == ReadOptions(
        groups=("prices", "trades"),
        delivery="rso",
        agent="/var/site",
        config=Config.from_mapping({"log": {"directory": "/var/logs"}}),
        executors="fetch",
        fetch_timeout_s=0.5,
        starting=Latest(),
        read_level="k:3",
        subscription="risk",
        max_rows_per_trigger=1_000,
        max_bytes_per_trigger=64 << 20,
        min_rows_per_trigger=10,
        max_trigger_delay_s=300.0,
        min_partitions=4,
        max_rows_per_partition=250,
        fail_on_data_loss=False,
        columns=("value", "kind"),
        senders=("anna", "bert"),
        kinds=("data", "gap"),
        isolation="uncommitted",
    )


def test_options_of_batches_alone() -> None:
    options = a_batch(path="/var/logs", pushdown="true", branch=str(VIEW), endingTimestamp="5")
    assert (options.path, options.pushdown, options.branch, options.ending) == ("/var/logs", True, VIEW, AtTime(5_000))


def test_settings_become_a_config() -> None:
    options = a_stream(
        interface="lo",
        address="239.192.7.7",
        port="7000",
        ttl="0",
        transport="multicast",
        security="off",
        quorum="2",
        advertise="10.0.0.5",
        retentionBytes="2g",
        retentionTime="48h",
        slowReader="block",
    )
    assert options.config == Config.from_mapping(
        {
            "network": {"interface": "lo", "address": "239.192.7.7", "port": 7000, "ttl": 0},
            "group": {"quorum": "2"},
            "agent": {"advertise": "10.0.0.5"},
            "log": {"retention_bytes": 2 << 30, "retention_s": 172_800.0, "slow_reader": "block"},
        }
    )


def test_options_go_before_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[network]\nttl = 9\ninterface = "eth7"\n[membership]\nblock_ms = 4000\n')
    config = a_stream(config=str(file), interface="lo").config
    assert (config.network.ttl, config.network.interface, config.membership.block_ms) == (9, "lo", 4_000)


def test_names_of_options_have_no_case() -> None:
    assert a_stream(MAXROWSPERTRIGGER="7").max_rows_per_trigger == 7
    assert a_stream(maxrowspertrigger="7").max_rows_per_trigger == 7


def test_the_options_travel_to_other_processes() -> None:
    cuts = json.dumps({"prices": cut_fields(CUT)})
    for options in (a_stream(startingOffsets=cuts), a_batch(path="/var/logs", branch=str(VIEW))):
        assert pickle.loads(pickle.dumps(options)) == options


def test_spark_itself_is_not_needed() -> None:
    code = (
        "import sys, pyspark_intergroup.options as o; sys.exit(any(m.split('.')[0] == 'pyspark' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_checkpoint_location_is_no_business_of_a_read() -> None:
    assert a_stream(checkpointlocation="/tmp/q") == a_stream()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grup": "prices"}, "there is no option 'grup'; did you mean group?"),
        ({"maxRowPerTriger": "5"}, "there is no option 'maxRowPerTriger'; did you mean maxRowsPerTrigger?"),
        ({"ack": "all"}, "ack is for writes; leave it out of a read"),
        ({"TXNAPPID": "a"}, "txnAppId is for writes; leave it out of a read"),
        ({"endingOffsets": "latest"}, "endingOffsets is for batch reads; leave it out of a stream"),
        ({"path": "/var/logs"}, "path is for batch reads; leave it out of a stream"),
        ({"pushdown": "true"}, "pushdown is for batch reads; leave it out of a stream"),
        ({"Group": "trades"}, "group is given twice, as 'prices' and 'trades'"),
        ({"group": "a,,b"}, "group is 'a,,b'; it must be names separated by commas, with none of them empty"),
        ({"group": "a,b,a"}, "group names 'a' twice; name it once"),
        ({"group": "a\x07"}, r"a name in group is 'a\x07'; it must be 1 to 255 bytes of printable text"),
        ({"group": "  "}, "group is empty; give it a value or leave it out"),
        ({"delivery": "fifo"}, "delivery is 'fifo'; it must be uu, rso or rto"),
        ({"executors": "push"}, "executors is 'push'; it must be auto, join or fetch"),
        ({"agent": "site"}, "agent is 'site'; it must be the absolute path of a directory"),
        ({"logDir": "logs"}, "logDir is 'logs'; it must be the absolute path of a directory"),
        ({"readLevel": "k:0"}, "readLevel is 'k:0'; it must be local, k:N for N further sites, majority or stable"),
        ({"readLevel": "all"}, "readLevel is 'all'; it must be local, k:N for N further sites, majority or stable"),
        ({"minPartitions": "0"}, "minPartitions is '0'; it must be a whole number from 1 on"),
        ({"maxRowsPerPartition": "1e3"}, "maxRowsPerPartition is '1e3'; it must be a whole number from 1 on"),
        ({"includeViews": "yes"}, "includeViews is 'yes'; it must be true or false"),
        ({"columns": "value,vlaue"}, f"columns names 'vlaue'; it must name some of {', '.join(COLUMNS)}"),
        ({"columns": "value,value"}, "columns names 'value' twice; name it once"),
        ({"kinds": "views"}, "kinds names 'views'; it must name some of data, view, gap"),
        ({"isolation": "dirty"}, "isolation is 'dirty'; it must be committed or uncommitted"),
        ({"transport": "unicast"}, "transport is 'unicast'; only multicast is possible for now"),
        ({"security": "psk"}, "security is 'psk'; only off is possible for now"),
        ({"address": "10.0.0.1"}, "address is '10.0.0.1'; it must be an IPv4 multicast address, such as 239.192.7.7,"),
        ({"port": "70000"}, "port is '70000'; it must be a whole number from 0 to 65_535"),
        ({"ttl": "far"}, "ttl is 'far'; it must be a whole number from 0 to 255"),
        ({"quorum": "half"}, "quorum is 'half'; it must be none, majority, all or a number of sites from 1 on"),
        ({"slowReader": "wait"}, "slowReader is 'wait'; it must be one of spill, block, gap"),
        ({"retentionTime": "10ms"}, "retentionTime is '10ms'; it must be a number from 1 to 1_000_000_000 seconds"),
        ({"retentionBytes": "1k"}, "retentionBytes is '1k'; it must be a whole number from 65_536 to "),
        ({"config": "/no/such.toml"}, "cannot read settings from /no/such.toml"),
    ],
)
def test_what_a_stream_refuses(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_stream(**given)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("option", ["peers", "keyFile", "trustFile"])
def test_what_is_to_come_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{option} .* is not possible yet; leave it out$"):
        a_stream(**{option: "x"})


def test_a_read_needs_a_group_or_a_path() -> None:
    for streaming in (True, False):
        with pytest.raises(ConfigError, match="there is no group to read; name it with"):
            ReadOptions.of({}, streaming=streaming)


@pytest.mark.parametrize("option", [option for option in READ_OPTIONS if option.scope is Scope.STREAMS])
def test_a_batch_refuses_what_is_for_streams(option: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{option.name} is for streams; leave it out of a batch read$"):
        a_batch(**{option.name: "1"})


@pytest.mark.parametrize("option", [option for option in READ_OPTIONS if option.name != "group"])
def test_no_option_is_ignored(option: Any) -> None:
    """Whatever an empty value is given to complains by its own name: it is looked at, and by the name in the table."""
    read = a_stream if option.scope is Scope.STREAMS else a_batch
    with pytest.raises(ConfigError, match=f"^{option.name} "):
        read(**{option.name: " "})


@pytest.mark.parametrize(
    ("delivery", "level", "isolation"), [("uu", "local", "uncommitted"), ("rso", "stable", "uncommitted")]
)
def test_weaker_deliveries_have_other_defaults(delivery: str, level: str, isolation: str) -> None:
    options = a_stream(delivery=delivery)
    assert (options.read_level, options.isolation) == (level, isolation)
    assert default_isolation(delivery) == isolation
    with pytest.raises(
        ConfigError, match=r"^isolation is 'committed' and delivery is '(uu|rso)'.*; use rto, or uncommitted$"
    ):
        a_stream(delivery=delivery, isolation="committed")


def test_unordered_delivery_is_read_as_this_site_has_it() -> None:
    assert a_stream(delivery="uu", readLevel="local").read_level == "local"
    with pytest.raises(
        ConfigError, match=r"^readLevel is 'majority' and uu promises nothing of other sites; it must be"
    ):
        a_stream(delivery="uu", readLevel="majority")


def test_limits_that_contradict_one_another_are_refused() -> None:
    with pytest.raises(ConfigError, match="two names of one option"):
        a_stream(maxRowsPerTrigger="5", maxOffsetsPerTrigger="5")
    with pytest.raises(ConfigError, match=r"^maxTriggerDelay bounds how long minRowsPerTrigger waits; give that too"):
        a_stream(maxTriggerDelay="5s")
    with pytest.raises(ConfigError, match=r"^minRowsPerTrigger is 6 and maxRowsPerTrigger is 5; it must not be less$"):
        a_stream(minRowsPerTrigger="6", maxRowsPerTrigger="5")


def test_views_can_be_left_out() -> None:
    assert a_stream(includeViews="false").kinds == ("data", "gap")
    assert not a_stream(includeViews="false").include_views
    assert a_stream(includeViews="false", kinds="data").kinds == ("data",)
    assert a_stream(includeViews="true", kinds="view").kinds == ("view",)
    assert a_stream(includeViews="true").include_views


@pytest.mark.parametrize(("views", "kinds"), [("false", "data,view"), ("true", "data")])
def test_two_options_about_views_must_agree(views: str, kinds: str) -> None:
    with pytest.raises(ConfigError, match="which contradict each other; leave one of them out"):
        a_stream(includeViews=views, kinds=kinds)
