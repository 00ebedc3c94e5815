"""Engines that do the parts of a job: `dedup_job.run(..., job=..., executor=...)`.

An executor is any object with the method `submit` of `concurrent.futures.Executor`, such as a `ProcessPoolExecutor`, or those
of loky, Dask (`client.get_executor()`), mpi4py and submitit; or `Spark` or `Ray`. Each part is one task. Whether a part that
failed is done again, and how often, is the engine's affair: a part may be done any number of times.

Workers need this package, at the version of the caller, and the credentials of the stores.
"""

from __future__ import annotations

from ._engine import Engine, Executor, Submits, do_part, engine_for
from ._ray import Ray
from ._spark import Spark, SparkSummary

__all__ = ["Engine", "Executor", "Ray", "Spark", "SparkSummary", "Submits", "do_part", "engine_for"]

for _name in ("Engine", "Ray", "Spark", "SparkSummary", "Submits", "do_part", "engine_for"):
    globals()[_name].__module__ = "dedup_job.executors"
del _name
