import numpy as np
from numpy.typing import NDArray

MEANING: int

def seal(frames: NDArray[np.uint64], firsts: NDArray[np.uint64], /) -> None: ...
def fill(
    frames: NDArray[np.uint64],
    header: NDArray[np.uint64],
    payload: NDArray[np.uint8],
    firsts: NDArray[np.uint64],
    /,
) -> None: ...
def check(frames: NDArray[np.uint64], sound: NDArray[np.bool_], /) -> None: ...
def scan(
    frames: NDArray[np.uint64],
    sound: NDArray[np.bool_],
    firsts: NDArray[np.uint64],
    seams: NDArray[np.int64],
    /,
) -> int: ...
def total(frame: bytes | bytearray | memoryview | NDArray[np.uint64], /) -> int: ...
def digest(firsts: NDArray[np.uint64], base: int, /) -> int: ...
