"""Which Java Spark would run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = 17
"""What this Spark runs on, or later."""
ASK_SECONDS = 30.0


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        return None
    try:
        asked = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', asked.stderr + asked.stdout)
    return int(found[1]) if found else None


def java_trouble() -> str | None:
    """Why Spark cannot start here and what to type, in a sentence; None where it can."""
    version = java_version()
    if version is not None and version >= OLDEST:
        return None
    there = "no Java is found" if version is None else f"the Java found is version {version}"
    return (
        f"Spark needs Java {OLDEST} or later, and {there}; on Debian or Ubuntu type "
        f"`sudo apt-get install openjdk-{OLDEST}-jre-headless`, elsewhere install one and set JAVA_HOME to it"
    )
