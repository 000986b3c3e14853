"""How a member is fitted to what the kernel grants it."""

from __future__ import annotations

import pytest

from intergroup_core.runtime.memory import keep_freed_memory
from intergroup_core.runtime.sockets import BUFFER_PER_ROOM, within_buffer
from tests.builders import a_config


@pytest.mark.parametrize(
    ("room", "granted", "reported"),
    [
        (300_000, 8_000_000, 300_000),
        (300_000, 300_000 * BUFFER_PER_ROOM, 300_000),
        (300_000, 200_000, 200_000 // BUFFER_PER_ROOM),
        (300_000, 1_000, 10_000),
    ],
)
def test_the_room_a_member_reports_fits_the_socket_buffer_it_got(room: int, granted: int, reported: int) -> None:
    config = within_buffer(a_config(report={"room_bytes": room}), granted)
    assert config.report.room_bytes == reported


def test_freed_memory_is_kept_or_the_c_library_has_no_such_option() -> None:
    assert keep_freed_memory() in (True, False)
