"""Where a read begins and ends."""

from __future__ import annotations

import json

import pytest

from intergroup_core.errors import ConfigError
from intergroup_core.log.cut import EntryCut
from intergroup_core.log.cut_codec import cut_fields
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.points import AtCuts, AtView, Earliest
from tests.unit.connector.reads import CUT, VIEW, a_batch, a_stream


def test_a_stream_may_begin_with_what_is_kept() -> None:
    assert a_stream(startingOffsets="Earliest").starting == Earliest()


def test_a_read_may_begin_with_a_view() -> None:
    assert a_stream(startingView=str(VIEW)).starting == AtView(VIEW)


def test_a_read_may_begin_and_end_at_cuts() -> None:
    cuts = json.dumps({"prices": cut_fields(CUT)})
    options = a_batch(startingOffsets=cuts, endingOffsets=cuts)
    assert options.starting == options.ending == AtCuts(Offsets({"prices": CUT}))


def test_a_read_may_begin_with_what_a_checkpoint_holds() -> None:
    offsets = Offsets({"prices": CUT})
    assert a_stream(startingOffsets=offsets.to_text()).starting == AtCuts(offsets)


def test_a_group_may_be_called_version() -> None:
    cuts = json.dumps({"version": cut_fields(CUT)})
    assert a_stream(group="version", startingOffsets=cuts).starting == AtCuts(Offsets({"version": CUT}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"startingOffsets": "earliest", "startingTimestamp": "5"},
            "startingOffsets and startingTimestamp are both given; a read takes only one of startingOffsets, "
            "startingTimestamp, startingView",
        ),
        ({"endingOffsets": "latest", "endingTimestamp": "5"}, "endingOffsets and endingTimestamp are both given;"),
        ({"startingOffsets": "newest"}, "startingOffsets is 'newest'; it must be earliest, latest or a JSON object"),
        ({"startingOffsets": "[1]"}, "startingOffsets is '[1]'; it must be earliest, latest or a JSON object"),
        ({"startingOffsets": "[" * 99_999}, "startingOffsets is '[[[[["),
        ({"startingOffsets": "{}"}, "startingOffsets is not a JSON object of a cut per group: "),
        (
            {"endingOffsets": '{"prices": 5}'},
            "endingOffsets is not a JSON object of a cut per group: the offset of group 'p",
        ),
        (
            {"startingOffsets": json.dumps({"trades": cut_fields(CUT)})},
            "startingOffsets is for trades and the read is of prices; give a cut for each group, and for no other",
        ),
        (
            {"startingOffsets": json.dumps({"prices": cut_fields(EntryCut(1, 2))})},
            "startingOffsets has a cut of uu for prices and the read is in rto, whose order is another; ",
        ),
        (
            {"startingOffsets": "latest"},
            "startingOffsets is 'latest', behind all that a batch could read; use earliest",
        ),
        ({"endingOffsets": "earliest"}, "endingOffsets is 'earliest', before all that a batch could read; use latest"),
        ({"startingTimestamp": "6", "endingTimestamp": "5"}, "startingTimestamp is later than endingTimestamp;"),
        ({"startingView": "7"}, "startingView is '7'; it must be the id of a view as the column view_id shows it"),
        ({"startingView": str(VIEW), "group": "a,b"}, "startingView is a view of one group, and the groups are a, b;"),
        ({"branch": str(VIEW)}, "branch chooses among logs that lie at a path, and there is none; give path, or"),
        ({"branch": "main", "path": "/x"}, "branch is 'main'; it must be the id of a view"),
        ({"path": "hdfs://host/logs"}, "path is 'hdfs://host/logs'; it must be a directory that every executor sees"),
        (
            {"path": "/x", "readLevel": "stable"},
            "readLevel is 'stable' and a path is read as it lies; it must be local",
        ),
    ],
)
def test_what_a_batch_refuses(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_batch(**given)
    assert str(refused.value).startswith(said)


def test_a_path_needs_no_group_and_its_logs_say_how_they_were_delivered() -> None:
    options = ReadOptions.of({"path": "file:///var/logs"}, streaming=False)
    assert (options.path, options.groups, options.delivery, options.isolation) == ("/var/logs", (), None, None)
    assert options.read_level == "local"
    assert a_batch(path="/x", isolation="committed").isolation == "committed"
    assert a_batch(path="/x", delivery="rso").isolation == "uncommitted"
