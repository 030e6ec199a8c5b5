"""One spend on a cluster: `spark-submit examples/spark_spend.py DIR LOSSES.parquet SPEND_ID`.

The state lives in `DIR`, Parquet files on a file system that all nodes share. The first run creates
it. A run that is repeated, whole or after a crash, spends once. Python and residuum[spark] must be
installed on the workers. The active set is left in Parquet under `DIR/active` and is as private
as the data: the job that computes the answer reads it there.
"""

import argparse

import residuum as rz


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
    mechanism = None if given.laplace is None else rz.mechanisms.Laplace(scale=given.laplace)
    filter = rz.GdpResidueFilter(mu=given.mu)
    with rz.individual.create(f"parquet:{given.directory}", filter=filter) as state:
        state.spend(given.losses, spend_id=given.spend_id, mechanism=mechanism)
    print(f"{given.spend_id} is durable")


if __name__ == "__main__":
    main()
