"""`python -m residuum`: the command line."""

from residuum.cli import main

if __name__ == "__main__":
    main()
