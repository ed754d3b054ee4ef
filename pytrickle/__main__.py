"""The command line, run as `pytrickle` or `python -m pytrickle`."""

import signal


def main() -> None:
    """Run the command line; whoever presses Ctrl-C while it is still loading ends it without a word."""
    waiting = signal.getsignal(signal.SIGINT)
    if waiting is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pytrickle import cli

    signal.signal(signal.SIGINT, waiting)
    try:
        cli.main()
    finally:
        # What is left is the interpreter's own end.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
