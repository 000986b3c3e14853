"""Builds the compiled part of a wheel where there is a C compiler; without one the wheel is of Python alone."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("intergroup_core/wire/_native.c")
BUILT = SOURCE.with_suffix(".abi3.so")


class CompiledPart(BuildHookInterface):  # type: ignore[type-arg]
    """Numpy does all that the compiled part does, so whatever keeps it from being built is said and no error."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if reason := compile_to(root / SOURCE, root / BUILT):
            with suppress(OSError):
                (root / BUILT).unlink()  # of an older source
            self.app.display_warning(f"frames will be checked by numpy alone, which takes longer: {reason}")
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["artifacts"].append(f"/{BUILT}")


def compile_to(source: Path, built: Path, *flags: str, compiler: str = "") -> str:
    """Build a module; the reason where that cannot be done."""
    command = shlex.split(compiler or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(command[0]) is None and not compiler:
        command = ["cc"]  # Python may have been built by one that is not here
    include = f"-I{sysconfig.get_path('include')}"
    part = built.with_name(f"{built.name}.part")  # never half a module under the name that is imported
    command += ["-O2", "-fwrapv", "-shared", "-fPIC", "-fvisibility=hidden", include, *flags]
    command += [str(source), "-o", str(part)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
        part.replace(built)
    except OSError as error:
        return f"there is no C compiler ({error})"
    except subprocess.CalledProcessError as error:
        with suppress(OSError):
            part.unlink()
        return f"{command[0]} could not compile {source.name}: {error.stderr.strip()}"
    return ""
