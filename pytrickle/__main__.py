"""The command line, run as `python -m pytrickle`."""

from pytrickle.cli import main

if __name__ == "__main__":
    main()
