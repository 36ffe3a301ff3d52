"""What users type: one file per command.

Every command says what was wrong in one line and exits with 2 on wrong usage or settings, 130 on Ctrl-C (but for a
crawl that has begun, which is stopped by it), 1 on anything else; no traceback reaches a user.

| | |
| --- | --- |
| to crawl | `demo`, `crawl`, `resume`, `recrawl`; `run` shows what they do, `seeds` reads what they begin with |
| to speak to a crawl | `control`: status, pause, stop, add |
| to read one | `query`, `show`, `export`, `verify` |
| one by itself | `fetch` a URL, the synthetic `web`, a `drum` |
| to think first | `plan` (`measured` is what a crawl tells it), `papers`, `rank`, `rank_compare`, `rank_picture`, `simulate`, `simulate_picture`, `simulate_parallel`, `simulate_parallel_picture` |
| for all of them | `app`, the table of commands; `compiling`, what the first start shows; `interrupts`, what Ctrl-C does; `wording` of figures; `pictures` as files |
"""

from __future__ import annotations

import io
import os
import sys

from barkspider.cli.interrupts import INTERRUPTED
from barkspider.core.errors import BarkspiderError


def main() -> None:
    """The entry point of the `barkspider` program."""
    _prepare_streams()
    try:
        code = _run()
    except BarkspiderError as error:
        _complain(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        sys.stderr.close()
        code = 1
    except OSError as error:
        _complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> object:
    import typer  # here, and not above, so that Ctrl-C during the imports is caught as well

    from barkspider.cli.app import app
    from barkspider.cli.compiling import announce

    announce(sys.argv[1:])
    try:
        code = app(standalone_mode=False)
        if code == 130:  # how Typer tells of Ctrl-C
            raise KeyboardInterrupt
        return code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        message = error.format_message()
        if message:  # a bare `barkspider` has printed its help instead
            _complain(f"{message} (see barkspider --help)")
        return 2


def _prepare_streams() -> None:
    """Make sure of three open streams (uvloop aborts without them) that can write any text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _complain(message: str) -> None:
    print("barkspider: " + " ".join(message.split()), file=sys.stderr)


if __name__ == "__main__":
    main()
