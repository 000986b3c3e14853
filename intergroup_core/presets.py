"""The presets as data: what differs from the defaults. `conf/` holds the same values with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Preset = Mapping[str, Mapping[str, int | float | bool | str]]

_WAN: Preset = {
    "group": {"frame_bytes": 1_200},
    "send": {
        "bundle_bytes": 60_000,
        "burst_bytes": 12_000,
        "unstable_bytes": 32_000_000,
        "keepalive_gap_us": 5_000.0,
        "keepalive_idle_ms": 500.0,
        "bandwidth_start": 2e6,
        "bandwidth_min": 100e3,
        "bandwidth_max": 125e6,
        "bandwidth_doubling_ms": 2_000.0,
    },
    "repair": {
        "distance_start_us": 40_000.0,
        "distance_floor_us": 1_000.0,
        "backoff_max_ms": 5_000.0,
        "give_up_ms": 30_000.0,
        "bandwidth": 2e6,
    },
    "report": {"busy_ms": 50.0, "idle_ms": 1_000.0},
    "membership": {
        "bootstrap_retry_ms": 300.0,
        "bootstrap_wait_ms": 2_000.0,
        "sponsor_ms": 1_000.0,
        "suspect_ms": 4_000.0,
        "suspect_max_ms": 30_000.0,
        "repeat_ms": 200.0,
        "cut_wait_ms": 100.0,
        "receivers_wait_ms": 1_500.0,
        "backoff_ms": 200.0,
        "block_ms": 20_000.0,
        "lease_ms": 10_000.0,
        "forget_ms": 15_000.0,
        "linger_ms": 5_000.0,
    },
    "hierarchy": {
        "bandwidth": 64_000.0,
        "busy_ms": 250.0,
        "closeness_ms": 15.0,
        "ring_ms": 100.0,
        "fault_ms": 8_000.0,
        "grace_ms": 16_000.0,
    },
    "network": {"ttl": 32},
}

_TEST: Preset = {
    "group": {"frame_bytes": 256, "max_message_bytes": 100_000},
    "send": {
        "bundle_bytes": 2_000,
        "burst_bytes": 8_000,
        "queue_bytes": 1_000_000,
        "unstable_bytes": 500_000,
        "keepalive_gap_us": 1_000.0,
        "bandwidth_start": 1e6,
        "bandwidth_min": 100e3,
        "bandwidth_max": 10e6,
    },
    "repair": {
        "distance_start_us": 5_000.0,
        "give_up_ms": 10_000.0,
        "bandwidth": 1e6,
        "buffer_bytes": 2_000_000,
    },
    "report": {"busy_ms": 50.0, "idle_ms": 200.0, "room_bytes": 500_000},
    "membership": {
        "bootstrap_wait_ms": 400.0,
        "sponsor_ms": 150.0,
        "repeat_ms": 50.0,
        "cut_wait_ms": 20.0,
        "receivers_wait_ms": 250.0,
        "backoff_ms": 50.0,
        "silence_ms": 5_000.0,
        "forget_ms": 2_500.0,
    },
    "hierarchy": {
        "interval_ms": 200.0,
        "busy_ms": 50.0,
        "local_target": 8,
        "coordinators_high": 16,
        "change_low_ms": 400.0,
        "change_high_ms": 800.0,
        "ring_ms": 120.0,
        "fault_ms": 1_200.0,
        "grace_ms": 2_400.0,
    },
    "network": {"socket_buffer_bytes": 1_000_000, "app_queue_bytes": 1_000_000},
}

PRESETS: Mapping[str, Preset] = MappingProxyType({"lan": {}, "wan": _WAN, "test": _TEST})
