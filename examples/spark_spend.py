"""One spend on a cluster: `spark-submit examples/spark_spend.py DIR LOSSES.parquet SPEND_ID`.

The state lives in `DIR`, Parquet files on a file system that all nodes share. The first run creates
it. A run that is repeated, whole or after a crash, charges once, and says so by its exit status:

    0   this run made the charge: one answer may be released for it
    6   an earlier run made it, and may have led to a release already

After 6, release only what the earlier run stored, or know that it released nothing. Python and
residua[spark] must be installed on the workers. The active set is left in Parquet under
`DIR/active` and is as private as the data: the job that computes the answer reads it there.
"""

import argparse
import sys

import residua as rz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument(
        "losses", help="Parquet with the columns subject and nu, eps or nothing more"
    )
    parser.add_argument("spend_id")
    parser.add_argument("--mu", type=float, default=1.0, help="everybody's budget")
    parser.add_argument("--laplace", type=float, help="scale of a Laplace query that all pay for")
    given = parser.parse_args()
    mechanism = None if given.laplace is None else rz.Laplace(scale=given.laplace)
    filter = rz.GdpResidueFilter(mu=given.mu)
    with rz.individual.create(f"parquet:{given.directory}", filter=filter) as state:
        spent = state.spend(given.losses, spend_id=given.spend_id, mechanism=mechanism)
    if spent.replayed:
        print(f"{given.spend_id} was charged by an earlier run: its answer may have been released")
        sys.exit(6)
    print(f"{given.spend_id} is durable: one answer may be released for it")


if __name__ == "__main__":
    main()
