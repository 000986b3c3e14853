"""The compiled passes and numpy say the same of everything; where nothing was compiled, numpy stands alone."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.log.digest import MASK64, frames_digest
from intergroup_core.wire import native
from intergroup_core.wire.checksum import check_frame, check_frames, scan_frames, seal_frame, seal_frames
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.header import HEADER_WORDS, MAX_FRAME_BYTES
from intergroup_core.wire.native import Compiled
from intergroup_core.wire.records import pack_records

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "intergroup_core/wire/_native.c"
FRAME_SIZES = (48, 56, 80, 104, 112, 120, 176, 1_400, 9_000, MAX_FRAME_BYTES)
"""With and without words left over where four or eight are taken at a time."""
HAS_COMPILER = shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()

NO_COMPILER = "there is no C compiler here, or Python's headers are not: numpy does it all"


@pytest.fixture(scope="module")
def hook() -> Iterator[ModuleType]:
    """The build hook, whose base class is only there while something is built."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patched:
        packages = interface.__name__.split(".")
        for depth in range(1, len(packages)):
            name = ".".join(packages[:depth])
            patched.setitem(sys.modules, name, ModuleType(name))
        patched.setitem(sys.modules, interface.__name__, interface)
        yield loaded("hatch_build", ROOT / "hatch_build.py")


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=[1, 4, 8])
def compiled(request: pytest.FixtureRequest, hook: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Taking so many words at a time, where this processor can."""
    if not HAS_COMPILER:
        pytest.skip(NO_COMPILER)
    place = tmp_path_factory.mktemp("native") / "_native.abi3.so"
    strict = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", f"-DWIDTH={request.param}")
    assert hook.compile_to(SOURCE, place, *strict) == ""
    return cast(Compiled, loaded("_native", place))


def both(monkeypatch: pytest.MonkeyPatch, compiled: Compiled) -> Iterator[str]:
    """Once with each of the two in force."""
    for name, each in (("compiled", compiled), ("numpy", None)):
        monkeypatch.setattr(native, "compiled", each)
        yield name


def some_frames(size: int, count: int = 5) -> np.ndarray[Any, np.dtype[np.uint64]]:
    frames = np.random.default_rng(size).integers(0, 1 << 64, (count, size // 8), dtype=np.uint64)
    frames[:, 0] &= np.uint64(0xFFFFFFFF_00000000)
    return frames


@pytest.mark.skipif(not HAS_COMPILER, reason=NO_COMPILER)
def test_what_was_set_up_here_is_compiled() -> None:
    assert native.compiled is not None, "type make venv: without it every byte costs twice as much"


@pytest.mark.parametrize("size", FRAME_SIZES)
def test_frames_are_sealed_alike(compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    found = []
    for _ in both(monkeypatch, compiled):
        frames = some_frames(size)
        firsts = seal_frames(frames)
        assert (firsts == frames[:, 0]).all()
        found.append(frames.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("size", FRAME_SIZES)
def test_one_frame_is_sealed_and_checked_as_many_are(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    frames = some_frames(size, 1)
    octets = bytearray(frames.tobytes())
    seal_frames(frames)
    stated = int(frames[0, 0]) & 0xFFFFFFFF
    for _ in both(monkeypatch, compiled):
        alone = bytearray(octets)
        seal_frame(alone)
        assert alone == frames.tobytes()
        for each in (alone, bytes(alone), memoryview(alone), frames[0]):
            assert check_frame(each, stated)
        alone[-1] ^= 1
        assert not check_frame(alone, stated)


@pytest.mark.parametrize("size", FRAME_SIZES)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_frames_that_are_scanned_stay_as_they_are(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int, count: int
) -> None:
    frames = some_frames(size, count)
    seal_frames(frames)
    fixed = frames.copy()
    fixed.flags.writeable = False
    for _ in both(monkeypatch, compiled):
        sound, firsts, seams = scan_frames(fixed)
        assert sound.tolist() == [True] * count
        assert (firsts == frames[:, 0]).all()
        assert seams.tolist() == list(range(1, count))
        assert (fixed == frames).all()


@pytest.mark.parametrize("size", FRAME_SIZES)
def test_frames_are_checked_alike(compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    frames = some_frames(size, 9)
    seal_frames(frames)
    rng = Random(size)
    for wrong in (2, 3, 8):
        frames[wrong, rng.randrange(size // 8)] ^= np.uint64(1 << rng.randrange(64))
    apart = np.zeros((9, size // 8 + 3), dtype=np.uint64)
    apart[:, 3:] = frames
    fixed = frames.copy()
    fixed.flags.writeable = False
    for _ in both(monkeypatch, compiled):
        expected = [at not in (2, 3, 8) for at in range(9)]
        for given in (frames, apart[:, 3:], fixed):
            assert check_frames(given).tolist() == expected
            sound, firsts, seams = scan_frames(given)
            assert sound.tolist() == expected
            assert (firsts == frames[:, 0]).all()
            assert seams.tolist() == list(range(1, 9))  # nothing here follows from anything


def counted_up(size: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Frames of one message from fragment 65,530 on, so that the count of some goes round."""
    frames = some_frames(size, count)
    frames[:, :HEADER_WORDS] = [0x1B1 << 32, 65_530 << 48 | 7 << 32 | 9, 77, 5, 11, 1_000]
    rising = np.arange(count, dtype=np.uint64)
    frames[:, 1] += rising << np.uint64(48)
    frames[:, 4] += rising
    frames[:, 5] += rising
    return frames


@pytest.mark.parametrize("size", FRAME_SIZES)
def test_seams_are_found_alike(compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rng = Random(size)
    frames = counted_up(size, 40)
    expected: set[int] = set()
    for at in (3, 4, 11, 25, 39):
        word = rng.randrange(HEADER_WORDS)
        frames[at, word] ^= np.uint64(1 << rng.randrange(32 if word == 0 else 0, 64))
        expected |= {at, at + 1}
    expected -= {40}
    if np.array_equal(frames[4, :HEADER_WORDS] - frames[3, :HEADER_WORDS], [0, 1 << 48, 0, 0, 1, 1]):
        expected -= {4}  # both were changed alike
    seal_frames(frames)
    for _ in both(monkeypatch, compiled):
        sound, firsts, seams = scan_frames(frames)
        assert sound.all()
        assert (firsts == frames[:, 0]).all()
        assert seams.tolist() == sorted(expected)
        assert scan_frames(counted_up(size, 1))[2].tolist() == []


@pytest.mark.parametrize("size", [1, 55, 56, 100, 1_000, 1_023, 1_024, 50_000])
def test_messages_are_made_alike(compiled: Compiled, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    payload = pack_records([Random(size).randbytes(size)] * 3)
    maker = FrameMaker(77, MemberId(5), 9, 128)
    made = []
    for _ in both(monkeypatch, compiled):
        emission = maker.message(payload, 11, Timestamp(1_000))
        for run in emission.runs:
            assert (run.first_words == run.frames[:, 0]).all()
            assert check_frames(run.frames).all()
        made.append(bytes(emission.data))
    assert made[0] == made[1]


@pytest.mark.parametrize("count", [1, 2, 700])
def test_digests_are_alike(compiled: Compiled, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    firsts = np.random.default_rng(count).integers(0, 1 << 64, (count, 3), dtype=np.uint64)
    found = set()
    for _ in both(monkeypatch, compiled):
        for words in (firsts[:, 1], firsts[:, 1].copy()):
            found.add(frames_digest(MemberId(MASK64 - 3), 1 << 47, words))
    assert len(found) == 1


def test_what_is_no_frame_is_refused_and_nothing_is_written(compiled: Compiled) -> None:
    frames = some_frames(80)
    before = frames.copy()
    firsts, sound = np.zeros(5, dtype=np.uint64), np.zeros(5, dtype=np.bool_)
    header, payload = np.zeros(HEADER_WORDS, dtype=np.uint64), np.zeros(5 * 32, dtype=np.uint8)
    large = np.zeros((1, MAX_FRAME_BYTES // 8 + 1), dtype=np.uint64)
    for wrong in (frames[0], frames[:, :5], frames.view(np.uint32), frames[:, ::2], large):
        with pytest.raises(ValueError, match="rows of 6 to 8188 words"):
            compiled.check(wrong, sound)
    with pytest.raises(ValueError, match="bytes beside frames"):
        compiled.seal(frames, firsts[:4])
    with pytest.raises(ValueError, match="bytes beside frames"):
        compiled.check(frames, sound[:4])
    seams = np.zeros(5, dtype=np.int64)
    for given in ((sound[:4], firsts, seams), (sound, firsts[:4], seams), (sound, firsts, seams[:4])):
        with pytest.raises(ValueError, match="bytes beside frames"):
            compiled.scan(frames, *given)
    for arguments in ((header[:5], payload, firsts), (header, payload[:-8], firsts), (header, payload, firsts[:4])):
        with pytest.raises(ValueError, match="bytes beside frames"):
            compiled.fill(frames, *arguments)
    for wrong in (bytes(9), bytes(MAX_FRAME_BYTES + 8)):
        with pytest.raises(ValueError, match="up to 8188 words"):
            compiled.total(wrong)
    frames.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        compiled.seal(frames, firsts)
    assert (frames == before).all()


def test_a_compiler_that_fails_is_named_and_leaves_nothing(hook: ModuleType, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.c"
    wrong.write_text("this is no C\n")
    place = tmp_path / "wrong.abi3.so"
    assert "there is no C compiler" in hook.compile_to(wrong, place, compiler="no-such-compiler-here")
    if HAS_COMPILER:
        assert "could not compile wrong.c" in hook.compile_to(wrong, place)
    assert list(tmp_path.iterdir()) == [wrong]


def test_a_tree_that_cannot_be_written_is_no_error(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    wrong = tmp_path / "wrong.c"
    wrong.write_text("this is no C\n")
    monkeypatch.setattr(Path, "unlink", refused)
    said: list[str] = []
    build = hook.CompiledPart()
    build.root, build.target_name = str(tmp_path), "wheel"
    build.app = ModuleType("app")
    build.app.display_warning = said.append
    build_data: dict[str, object] = {"artifacts": []}
    build.initialize("standard", build_data)
    assert hook.compile_to(wrong, tmp_path / "wrong.abi3.so") != ""
    assert build_data == {"artifacts": []}
    assert ["numpy alone" in each for each in said] == [True]


def test_what_an_older_source_left_behind_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    older = ModuleType("intergroup_core.wire._native")
    older.MEANING = 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, older.__name__, older)
    monkeypatch.setattr("intergroup_core.wire._native", older, raising=False)
    assert native._built() is None
