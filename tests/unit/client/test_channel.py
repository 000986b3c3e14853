"""Messages of the local channel."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.client.channel import MAX_MESSAGE_BYTES, Decoder, Kind, Said, encode, encode_failure, failure
from intergroup_core.errors import ChannelBroken, ConfigError, IntergroupError, MessageTooLarge

bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
messages = st.builds(Said, st.sampled_from(Kind), st.integers(0, 1 << 60), bodies)


@given(st.lists(messages, max_size=5), st.data())
def test_messages_come_as_they_were_sent_however_they_are_cut(sent: list[Said], data: st.DataObject) -> None:
    stream = b"".join(encode(*message) for message in sent)
    decoder = Decoder()
    found: list[Said] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += decoder.feed(stream[:size])
        stream = stream[size:]
    assert found == sent


@pytest.mark.parametrize(
    "message",
    [b"", b"\xc1", msgpack.packb(7), msgpack.packb([]), msgpack.packb([1, 2]), msgpack.packb([99, 1, None]),
     msgpack.packb([1, "one", None]), msgpack.packb([1, True, None]), msgpack.packb([1, 1, None, None])],
)  # fmt: skip
def test_what_is_no_message_breaks_the_channel(message: bytes) -> None:
    with pytest.raises(ChannelBroken):
        list(Decoder().feed(len(message).to_bytes(4, "little") + message))


def test_a_length_that_nothing_has_breaks_the_channel_before_anything_is_kept() -> None:
    with pytest.raises(ChannelBroken, match=str(MAX_MESSAGE_BYTES)):
        list(Decoder().feed(b"\xff\xff\xff\xff"))


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ChannelBroken, match="less at a time"):
        encode(Kind.SEND, 1, bytes(MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("error", [ConfigError("a bad option"), MessageTooLarge("a large record")])
def test_an_error_arrives_as_what_it_is(error: IntergroupError) -> None:
    (said,) = Decoder().feed(encode_failure(3, error))
    assert (said.kind, said.number) == (Kind.FAILURE, 3)
    found = failure(said.body)
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize(
    ("body", "kind"),
    [(["Unheard", "of"], IntergroupError), (["annotations", "x"], IntergroupError), ("what", ChannelBroken),
     ([1, 2], ChannelBroken)],
)  # fmt: skip
def test_an_error_that_is_not_known_here_is_one_all_the_same(body: Any, kind: type[IntergroupError]) -> None:
    assert type(failure(body)) is kind
