"""Keeps freed memory in the process: a gigabyte a second through fresh pages is a third page faults."""

from __future__ import annotations

import ctypes

KEPT_BYTES = 64_000_000
"""Freed memory at the heap's end that is not given back to the system."""
LARGEST_HEAP_BYTES = 32_000_000
"""Allocations up to this size come from the heap and not from a mapping of their own."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Set glibc's thresholds, which otherwise start at 128 kB; False where the C library has none."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    return bool(set_option(_MMAP_THRESHOLD, LARGEST_HEAP_BYTES) and set_option(_TRIM_THRESHOLD, KEPT_BYTES))
