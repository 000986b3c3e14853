"""The layers of docs/architecture.md, and the line below which nothing touches the world."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ENGINES = frozenset({"membership", "delivery", "multicast", "hierarchy", "transaction", "agreement"})

STOREYS: tuple[frozenset[str], ...] = (
    frozenset({"base"}),
    frozenset({"wire"}),
    frozenset({"sealing"}),
    frozenset({"effects"}),
    frozenset({"log"}),
    ENGINES,
    frozenset({"datapath"}),
    frozenset({"endpoint"}),
    frozenset({"site"}),
    frozenset({"runtime"}),
    frozenset({"client"}),
    frozenset({"agent"}),
    frozenset({"api"}),
    frozenset({"surface"}),
    frozenset({"sim"}),
    frozenset({"benchmarks"}),
    frozenset({"cli"}),
    frozenset({"connector"}),
)
HEIGHT = {part: height for height, storey in enumerate(STOREYS) for part in storey}
PURE = frozenset(part for part, height in HEIGHT.items() if height <= HEIGHT["site"])
CONNECTOR_MAY_IMPORT = frozenset({"connector", "client", "transaction", "log", "wire", "effects", "base", "surface"})
# Logs at rest are read where they lie, without an agent.
CONNECTOR_READS_WITH = frozenset({"intergroup_core.runtime.disk", "intergroup_core.runtime.stream_store"})

# Config.load is where users look for it, and only the edge reads files.
ALLOWED_UPWARDS = frozenset({("intergroup_core.config", "intergroup_core.runtime.settings")})

PURE_MODULES = frozenset(
    "__future__ abc array bisect collections contextlib copy dataclasses difflib enum fractions functools hashlib "
    "heapq ipaddress itertools json math msgpack numpy operator re statistics string struct tomllib types typing zlib "
    "datetime datetime.datetime datetime.date datetime.timedelta datetime.timezone random.Random".split()
)
"""All that the pure part may import from outside the project."""

# Arrow batches are what readers of a log want; Arrow's own files and sockets stay with the edge.
ARROW_MODULES = frozenset({"intergroup_core.log.arrow", "intergroup_core.log.data_batch"})

IMPURE_USES = frozenset(
    "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today "
    "numpy.random numpy.fromfile numpy.memmap numpy.load numpy.loadtxt numpy.genfromtxt numpy.save numpy.savetxt "
    "numpy.savez numpy.savez_compressed pyarrow.OSFile pyarrow.memory_map pyarrow.input_stream pyarrow.output_stream "
    "pyarrow.fs pyarrow.parquet".split()
)
IMPURE_BUILTINS = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"})


def part_of(module: str) -> str:
    """The part of the house that a module of the project belongs to."""
    package, *rest = module.split(".")
    if package == "pyspark_intergroup":
        return "connector"
    if not rest:
        return "surface"
    return rest[0] if rest[0] in HEIGHT or len(rest) > 1 else "base"


def is_ours(module: str) -> bool:
    return module.split(".")[0] in {"intergroup_core", "pyspark_intergroup"}


def imports(module: str, source: str, modules: frozenset[str], *, is_package: bool = False) -> Iterator[str]:
    """Every module or module.name that a source imports, at any depth, in full."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=origin, names=names, level=level):
                base = origin or ""
                if level:
                    parents = module.split(".")
                    kept = parents[: len(parents) - level + is_package]
                    base = ".".join(kept + ([origin] if origin else []))
                for alias in names:
                    full = f"{base}.{alias.name}"
                    yield full if not is_ours(base) or full in modules else base


def upward_imports(module: str, source: str, modules: frozenset[str], *, is_package: bool = False) -> list[str]:
    """Imports that do not point down."""
    here = part_of(module)
    if here not in HEIGHT:
        return [f"{module}: {here} has no storey; give it one here and in docs/architecture.md"]
    wrong = []
    for imported in imports(module, source, modules, is_package=is_package):
        if not is_ours(imported) or (module, imported) in ALLOWED_UPWARDS:
            continue
        there = part_of(imported)
        if there not in HEIGHT:
            wrong.append(f"{module} imports {imported}, which has no storey")
        elif here == "connector" and there not in CONNECTOR_MAY_IMPORT and imported not in CONNECTOR_READS_WITH:
            wrong.append(f"{module} imports {imported}; the connector uses the client and the log only")
        elif here != there and HEIGHT[there] >= HEIGHT[here]:
            beside = "beside" if HEIGHT[there] == HEIGHT[here] else "above"
            wrong.append(f"{module} imports {imported}, {beside} it")
    return wrong


def impurities(
    module: str, source: str, modules: frozenset[str] = frozenset(), *, is_package: bool = False
) -> list[str]:
    """Where a source reaches for the world by itself."""
    wrong = [
        f"{module} imports {imported}"
        for imported in imports(module, source, modules, is_package=is_package)
        if not is_ours(imported) and not _is_pure(imported) and not (imported == "pyarrow" and module in ARROW_MODULES)
    ]
    tree = ast.parse(source)
    names = _names_imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            used = _dotted(node, names)
            if used in IMPURE_USES:
                wrong.append(f"{module}:{node.lineno} uses {used}")
        if isinstance(node, ast.Call):
            called = _dotted(node.func, names)
            if called in IMPURE_BUILTINS or called == "random.Random":
                wrong.append(f"{module}:{node.lineno} calls {called}")
    return wrong


def _is_pure(imported: str) -> bool:
    if imported in IMPURE_USES or any(imported.startswith(f"{use}.") for use in IMPURE_USES):
        return False
    if imported in PURE_MODULES:
        return True
    top = imported.split(".")[0]
    return top in PURE_MODULES - {"datetime"}


def _names_imported(tree: ast.AST) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    names[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
            case ast.ImportFrom(module=str(origin), names=aliases, level=0):
                names.update({alias.asname or alias.name: f"{origin}.{alias.name}" for alias in aliases})
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=value, attr=attribute):
            return f"{_dotted(value, names)}.{attribute}"
        case _:
            return ""


def project_sources() -> dict[str, tuple[Path, bool]]:
    """Every module of the project: where it is and whether it is a package."""
    found = {}
    for base, package in ((ROOT, "intergroup_core"), (ROOT / "connector", "pyspark_intergroup")):
        for path in sorted((base / package).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            found[".".join(parts[:-1] if is_package else parts)] = (path, is_package)
    return found


SOURCES = project_sources()
MODULES = frozenset(SOURCES)


def test_every_import_points_down() -> None:
    wrong = [
        complaint
        for module, (path, is_package) in SOURCES.items()
        for complaint in upward_imports(module, path.read_text(), MODULES, is_package=is_package)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_pure_part_reaches_the_world_through_ports_only() -> None:
    wrong = [
        complaint
        for module, (path, is_package) in SOURCES.items()
        if part_of(module) in PURE
        for complaint in impurities(module, path.read_text(), MODULES, is_package=is_package)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_walk_sees_both_packages_and_every_storey_built() -> None:
    parts = {part_of(module) for module in MODULES}
    assert {"base", "wire", "delivery", "multicast", "hierarchy", "runtime", "sim", "cli", "connector"} <= parts


def test_no_exception_outlives_its_use() -> None:
    for module, imported in ALLOWED_UPWARDS:
        path, is_package = SOURCES[module]
        assert imported in set(imports(module, path.read_text(), MODULES, is_package=is_package))


KNOWN = frozenset(
    f"intergroup_core{suffix}"
    for suffix in (
        "",
        *(f".{base}" for base in ("ids", "config", "site", "endpoint", "runtime.udp", "sim.cluster", "cli.main")),
        *(f".{engine}" for engine in sorted(ENGINES)),
        ".runtime.disk",
        *(".delivery.rto", ".multicast.requests", ".log", ".wire", ".wire.header", ".agent.daemon", ".client.channel"),
    )
)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        *(
            (f"intergroup_core.{engine}.engine", f"import intergroup_core.{other}.state")
            for engine in sorted(ENGINES)
            for other in sorted(ENGINES - {engine})
        ),
        ("intergroup_core.delivery.rto", "from intergroup_core.multicast import requests"),
        ("intergroup_core.delivery.rto", "from ..multicast.requests import Requests"),
        ("intergroup_core.delivery.rto", "from .. import multicast"),
        ("intergroup_core.delivery.rto", "def lazily():\n    from intergroup_core.multicast import requests"),
        ("intergroup_core.delivery.rto", "from intergroup_core.endpoint import Endpoint"),
        ("intergroup_core.ids", "from intergroup_core.wire import header"),
        ("intergroup_core.wire.header", "from intergroup_core.log import segment"),
        ("intergroup_core.wire.header", "from intergroup_core import Config"),
        ("intergroup_core.log.segment", "import intergroup_core.delivery.rto"),
        ("intergroup_core.effects", "import intergroup_core.log"),
        ("intergroup_core.endpoint", "from intergroup_core.site import Site"),
        ("intergroup_core.site", "from intergroup_core.runtime import udp"),
        ("intergroup_core.runtime.udp", "from intergroup_core.client.channel import Channel"),
        ("intergroup_core.client.channel", "from intergroup_core.agent.daemon import Daemon"),
        ("intergroup_core.agent.daemon", "from intergroup_core.sim.cluster import SimCluster"),
        ("intergroup_core.sim.cluster", "from intergroup_core.cli import main"),
        ("intergroup_core.cli.main", "import pyspark_intergroup"),
        ("pyspark_intergroup.reader", "from intergroup_core.runtime import udp"),
        ("pyspark_intergroup.reader", "from intergroup_core.runtime.inbox import Inbox"),
        ("pyspark_intergroup.reader", "from intergroup_core.agent.daemon import Daemon"),
        ("pyspark_intergroup.reader", "from intergroup_core.membership.repair import Repair"),
        ("pyspark_intergroup.reader", "from intergroup_core.sim.cluster import SimCluster"),
        ("pyspark_intergroup.reader", "from intergroup_core.cli.main import main"),
        ("intergroup_core.ids", "from intergroup_core.runtime.settings import read_settings"),
        ("intergroup_core.utils.text", ""),
        ("intergroup_core.cli.main", "from intergroup_core.utils.text import shorten"),
    ],
)
def test_an_import_that_does_not_point_down_is_found(module: str, source: str) -> None:
    assert upward_imports(module, source, KNOWN)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("intergroup_core.delivery.rto", "from intergroup_core.wire.header import Header"),
        ("intergroup_core.delivery.rto", "from . import uu\nfrom .uu import Uu\nfrom ..wire import header"),
        ("intergroup_core.endpoint", "from intergroup_core.delivery.rto import Rto\nimport intergroup_core.multicast"),
        ("intergroup_core.sim.cluster", "from intergroup_core.endpoint import Endpoint\nimport time"),
        ("intergroup_core.cli.main", "from intergroup_core import __version__, config"),
        ("intergroup_core.config", "from intergroup_core.runtime.settings import read_settings"),
        ("pyspark_intergroup.reader", "from intergroup_core.client.channel import Channel"),
        ("pyspark_intergroup.reader", "from intergroup_core.runtime.disk import DirectoryDisk"),
        ("pyspark_intergroup.reader", "from intergroup_core.runtime import disk"),
        ("pyspark_intergroup.reader", "from intergroup_core.wire.header import Header"),
    ],
)
def test_an_import_that_points_down_is_left_alone(module: str, source: str) -> None:
    assert upward_imports(module, source, KNOWN) == []


def test_a_package_resolves_relative_imports_from_itself() -> None:
    source = "from . import rto"
    assert upward_imports("intergroup_core.delivery", source, KNOWN, is_package=True) == []
    assert list(imports("intergroup_core.delivery", source, KNOWN, is_package=True)) == ["intergroup_core.delivery.rto"]


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "from socket import AF_INET",
        "import time",
        "from time import monotonic_ns",
        "def now():\n    import time\n    return time.time()",
        "import threading",
        "import asyncio",
        "import os",
        "from os import urandom",
        "import os.path as paths",
        "from pathlib import Path",
        "import select",
        "import secrets",
        "import uuid",
        "import random",
        "from random import randint",
        "from random import Random, shuffle",
        "from random import Random\nrng = Random()",
        "from random import Random as R\nrng = R(7)",
        "import logging",
        "import importlib",
        "open('log')",
        "print('hello')",
        "__import__('socket')",
        "import datetime\nnow = datetime.datetime.now()",
        "from datetime import datetime, timezone\nnow = datetime.now(timezone.utc)",
        "from datetime import date as day\ntoday = day.today",
        "import numpy as np\nvalue = np.random.default_rng()",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy\nframes = numpy.fromfile('log')",
        "from numpy import memmap",
    ],
)
def test_a_reach_for_the_world_is_found(source: str) -> None:
    assert impurities("intergroup_core.delivery.rto", source)


def test_arrow_is_made_in_one_module_and_its_files_stay_outside() -> None:
    assert impurities("intergroup_core.log.arrow", "import pyarrow as pa") == []
    assert impurities("intergroup_core.log.reader", "import pyarrow as pa")
    assert impurities("intergroup_core.log.arrow", "import pyarrow.parquet")
    assert impurities("intergroup_core.log.arrow", "import pyarrow as pa\nfile = pa.OSFile('log')")


@pytest.mark.parametrize(
    "source",
    [
        "from random import Random\ndef choose(rng: Random) -> float:\n    return rng.uniform(0, 1)",
        "import numpy as np\nframes = np.zeros(8, np.uint64)",
        "from numpy.typing import NDArray",
        "import collections.abc, heapq, struct, hashlib",
        "from datetime import datetime\ndef year(at: datetime) -> int:\n    return at.year",
        "class Log:\n    def open(self) -> None: ...\ndef use(log: Log) -> None:\n    log.open()",
        "from intergroup_core.ids import Instant",
    ],
)
def test_what_is_injected_or_computed_is_left_alone(source: str) -> None:
    assert impurities("intergroup_core.delivery.rto", source, KNOWN) == []
