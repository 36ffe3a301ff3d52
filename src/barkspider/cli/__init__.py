"""What users type: one file per command.

Every command says what was wrong in one line and exits with 2 on wrong usage or settings, 130 on Ctrl-C (but for a
crawl that has begun, which is stopped by it), 1 on anything else; no traceback reaches a user.

| | |
| --- | --- |
| to crawl | `demo`, `crawl`, `resume`, `restore`, `recrawl`; `run` shows what they do, `seeds` reads what they begin with, `seed_files` from whatever file |
| to speak to a crawl | `control`: status, pause, stop, add; `sites` of one that goes by these; `cluster`: to start and speak to one on many machines |
| to divide one | `resize`, `exchange` |
| to read one | `why`, `query`, `report`, `limits`, `rules`, `dashboard`, `show`, `export` (texts by `corpus`), `verify`, `duphosts`, `cloaking` |
| one by itself | `fetch` a URL, the synthetic `web`, a `drum` |
| to think first | `plan` (`measured` is what a crawl tells it), `papers` (`papers_live`, `papers_live_parallel`, `papers_live_cookies` crawl for it), `rank`, `rank_compare`, `rank_picture`, `simulate`, `simulate_picture`, `simulate_parallel`, `simulate_parallel_picture` |
| for all of them | `app`, the table of commands; `compiling`, what the first start shows; `interrupts`, what Ctrl-C does; `progress`, a bar for what takes long; `terminal`, how anything reaches one; `wording` of figures; `pictures` as files |
"""

from __future__ import annotations

import sys
import traceback

from barkspider.cli.interrupts import INTERRUPTED
from barkspider.cli.terminal import complain, leave, prepare
from barkspider.core.errors import BarkspiderError, is_shortage


def main() -> None:
    """The entry point of the `barkspider` program."""
    prepare()
    try:
        code = _run()
    except BarkspiderError as error:
        complain(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        leave()
        code = 1
    except OSError as error:
        complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        code = 1
    except Exception as error:
        complain(_unexpected(error))
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> str:
    if is_shortage(error):
        return "memory has run out; what was written is safe, and a crawl goes on with `barkspider resume`"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a mistake of barkspider's own ({error!r:.300} at {place.filename}:{place.lineno}): please report it"
    )


def _run() -> object:
    import typer  # here, and not above, so that Ctrl-C during the imports is caught as well

    from barkspider.cli.app import program
    from barkspider.cli.compiling import announce

    announce(sys.argv[1:])
    try:
        code = program(standalone_mode=False)
        if code == 130:  # how Typer tells of Ctrl-C
            raise KeyboardInterrupt
        return code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        message = error.format_message()
        if message:  # a bare `barkspider` has printed its help instead
            complain(f"{message} (see barkspider --help)")
        return 2


if __name__ == "__main__":
    main()
