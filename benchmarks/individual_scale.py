"""Budgets of subjects at scale: `python -m benchmarks.individual_scale [--only NAME]`.

    growth   one Gaussian spend in memory on 1e5 to 1e8 subjects (2.4 GB of losses and budgets)
    duckdb   a Gaussian and a Laplace spend on disk, 50 million subjects, with memory
    spark    the same on Parquet in local mode, 3 million subjects, and from it what a cluster takes

Says on standard error what it is doing, then prints a table; `--write docs/scale.md` puts it there.
CPU is that of this process and, for Spark, of Java and its Python workers. Minutes; gigabytes of
disk in `--directory`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import residua as rz
from benchmarks.harness import pages
from benchmarks.harness.rows import aligned
from benchmarks.ledger_constants import processor_seconds, told
from residua.individual.cost_model import pricing_for

Line = tuple[str, ...]
HEAD: Line = ("work", "rows", "seconds", "of CPU", "million/s", "million/CPU s", "")
_CHUNK = 1_000_000


def forget_peak() -> None:
    """Let the system count the most memory anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_gigabytes() -> float:
    """The most memory that this process has had since then."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


class Clock:
    """Seconds of the clock and of this process's processors, and its children's, since then."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), processor_seconds(os.getpid())

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, processor_seconds(os.getpid()) - self._cpu


def line(work: str, rows: int, seconds: tuple[float, float], note: str = "") -> Line:
    wall, cpu = seconds
    rate = f"{rows / cpu / 1e6:.2f}" if cpu > 0.0 else ""
    return (work, f"{rows:,}", f"{wall:.3f}", f"{cpu:.3f}", f"{rows / wall / 1e6:.2f}", rate, note)


def page_table(lines: list[Line]) -> str:
    """For documentation."""
    # On one core the rate by the clock says it; Spark's Java works beside it.
    head = ("work", "subjects", "clock, s", "processor, s", "million/s", "")
    rows = [(*one[:5], one[6]) for one in lines]
    return f"{pages.markdown([head, *rows])}\n\n{pages.moment()}"


def growth(most: int) -> list[Line]:
    """The kernel on ever more subjects: seconds grow as rows do."""
    pricing = pricing_for(rz.GdpResidueFilter(mu=1.0), "nu", None)
    lines = []
    size = 100_000
    while size <= most:
        left = np.full(size, pricing.units.capacity, dtype=np.int64)
        losses = np.random.default_rng(size).uniform(0.0, 0.1, size)
        told(f"in memory, {size:,} subjects ...")
        times = []
        for _ in range(3):
            # The system counts hundredths of a second, too coarse for few rows.
            wall, cpu = time.perf_counter(), time.process_time()
            after = pricing.charge(left, losses)
            times.append((time.perf_counter() - wall, time.process_time() - cpu))
        assert after.size == size
        note = f"{left.nbytes / size:g} bytes of budget a subject"
        lines.append(
            line(
                "in memory, Gaussian, aligned",
                size,
                sorted(times, key=lambda both: both[1])[1],
                note,
            )
        )
        size *= 10
    return lines


def write_losses(path: Path, rows: int, column: str | None) -> None:
    """Losses of everybody, in chunks, in no order that helps."""
    rng = np.random.default_rng(3)
    # Odd multiples modulo a power of two visit every key once.
    bits = max(rows - 1, 1).bit_length()
    schema = pa.schema([("subject", pa.int64()), *([(column, pa.float64())] if column else [])])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, 2**bits, _CHUNK):
            key = np.arange(start, min(start + _CHUNK, 2**bits), dtype=np.int64)
            key = (key * 5_000_011) % 2**bits
            key = key[key < rows]
            columns: dict[str, Any] = {"subject": key}
            if column:
                columns[column] = rng.uniform(0.0, 0.1, key.size)
            writer.write_table(pa.table(columns, schema=schema))


def on_disk(name: str, state: Any, directory: Path, rows: int) -> list[Line]:
    lines = []
    first, second, few = (directory / f"{n}.parquet" for n in ("first", "second", "few"))
    told(f"{name}: writing losses of {rows:,} subjects ...")
    forget_peak()
    write_losses(first, rows, "nu")
    write_losses(second, rows, None)
    some = np.arange(0, rows, max(rows // 10_000, 1))
    pq.write_table(pa.table({"subject": some, "nu": np.full(some.size, 0.05)}), few)
    for work, path, mechanism, count in (
        ("first Gaussian spend, everyone new", first, None, rows),
        ("Laplace query on everyone", second, rz.laplace(scale=10.0), rows),
        ("Gaussian spend on few", few, None, some.size),
    ):
        told(f"{name}: {work} ...")
        clock = Clock()
        spent = state.spend(path, spend_id=work, mechanism=mechanism)
        seconds = clock.seconds()
        assert spent.active.num_rows == count and not spent.replayed
        del spent
        note = f"peak {peak_gigabytes():.1f} GB, {_on_disk(directory):.2f} GB on disk"
        lines.append(line(f"{name}: {work}", count, seconds, note))
        told("  ".join(lines[-1]))
    return lines


def _on_disk(directory: Path) -> float:
    size = 0
    for folder, _, files in os.walk(directory):
        size += sum(os.path.getsize(os.path.join(folder, file)) for file in files)
    return size / 2**30


def duckdb(directory: Path, rows: int) -> list[Line]:
    address = f"duckdb:///{directory}/subjects.db?memory_limit=4GB&threads=1"
    with rz.individual.create(address, filter=rz.GdpResidueFilter(mu=1.0)) as state:
        return on_disk("DuckDB, one thread", state, directory, rows)


def shuffled(session: Any) -> int:
    """Bytes that Spark has written for shuffles so far."""
    found = session.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(int(found.apply(place).totalShuffleWrite()) for place in range(found.size()))


def spark(directory: Path, rows: int) -> list[Line]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    told("Spark: starting Java ...")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    clock = Clock()
    session.range(10).mapInArrow(lambda batches: batches, "id bigint").collect()
    lines = [line("Spark local, first batch through Python", 10, clock.seconds())]
    address = f"parquet:{directory}/subjects"
    with rz.individual.create(address, filter=rz.GdpResidueFilter(mu=1.0), spark=session) as state:
        told("Spark: one row ...")
        for number in range(3):
            clock = Clock()
            state.spend({"subject": [-1], "nu": [0.1]}, spend_id=f"one row {number}")
            overhead = clock.seconds()
        lines.append(line("Spark local: one row (overhead)", 1, overhead))
        before = shuffled(session)
        found = on_disk("Spark local, one core", state, directory, rows)
        moved = shuffled(session) - before
    session.stop()
    return lines + found + cluster(overhead, rows, found[1], moved / (2 * rows), directory)


def cluster(
    overhead: tuple[float, float], rows: int, laplace: Line, bytes_a_row: float, directory: Path
) -> list[Line]:
    """A billion subjects on 25 nodes of 8 cores, 1 GB/s of network and 0.5 GB/s of disk each.

    From the Laplace query on everybody: seconds of CPU a row beyond the overhead, bytes shuffled
    and bytes on disk a row.
    """
    subjects, nodes, cores = 1e9, 25, 8
    each = (float(laplace[3]) - overhead[1]) / rows
    budgets = _on_disk(directory / "subjects" / "budgets") * 2**30 / rows
    computing = subjects * each / (nodes * cores)
    network = subjects * bytes_a_row / (nodes * 1e9)
    # Read budgets and losses, write both once for the shuffle and read them, write budgets.
    disk = subjects * (3 * budgets + 2 * bytes_a_row) / (nodes * 0.5e9)
    total = overhead[0] + computing + network + disk
    note = (
        f"{1e6 * each:.1f} µs of CPU, {bytes_a_row:.0f} bytes shuffled and {budgets:.0f} on disk"
        f" a row: {overhead[0]:.1f} s overhead, {computing:.0f} s computing, {network:.1f} s"
        f" network, {disk:.1f} s disk"
    )
    used = (total, subjects * each)
    return [line(f"worked out: {nodes} nodes of {cores} cores", int(subjects), used, note)]


def main() -> None:
    name = "python -m benchmarks.individual_scale"
    parser = argparse.ArgumentParser(
        prog=name, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=("growth", "duckdb", "spark"))
    parser.add_argument("--most", type=int, default=100_000_000, help="rows of `growth`")
    parser.add_argument("--rows", type=int, default=50_000_000, help="subjects of `duckdb`")
    parser.add_argument("--spark-rows", type=int, default=3_000_000, help="subjects of `spark`")
    parser.add_argument("--directory", type=Path, help="for files (default: a temporary one)")
    parser.add_argument("--write", type=Path, help="a page with marks to put the tables between")
    given = parser.parse_args()
    lines: list[Line] = [HEAD]
    chosen = given.only or ("growth", "duckdb", "spark")
    for name, work, rows in (
        ("growth", lambda _, most: growth(most), given.most),
        ("duckdb", duckdb, given.rows),
        ("spark", spark, given.spark_rows),
    ):
        if name in chosen:
            directory = Path(tempfile.mkdtemp(prefix="individual-", dir=given.directory))
            try:
                found = work(directory, rows)
            finally:
                shutil.rmtree(directory)
            lines += found
            if given.write:
                pages.fill(given.write, name, page_table(found))
    print(aligned(lines))
    load = os.getloadavg()[0]
    print(f"load average at the end: {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
