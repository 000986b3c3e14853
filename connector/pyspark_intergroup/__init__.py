"""The Spark source and sink of InterGroup.

Nothing is registered yet: `spark.readStream.format("intergroup")` comes with a later version. The package is here so
that its name, which Spark looks for by itself, and its place in the distribution are settled.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
