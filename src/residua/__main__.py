"""`python -m residua`: the command line."""

from residua.cli import main

if __name__ == "__main__":
    main()
