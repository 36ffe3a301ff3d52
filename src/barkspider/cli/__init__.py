"""What users type: one file per command.

Every command says what was wrong in one line and exits with 2 on wrong usage or settings, 1 on anything
else; no traceback reaches a user.
"""

from __future__ import annotations

import sys

from barkspider.core.errors import BarkspiderError


def main() -> None:
    """The entry point of the `barkspider` program."""
    import typer  # here, and not above: importing `barkspider.cli` should cost nothing

    from barkspider.cli.app import app

    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        _complain(f"{error.format_message()} (see barkspider --help)")
        code = 2
    except BarkspiderError as error:
        _complain(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        code = 1
    except BrokenPipeError:  # the reader of our output has left
        sys.stderr.close()
        code = 1
    except OSError as error:
        _complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    print("barkspider: " + " ".join(message.split()), file=sys.stderr)


if __name__ == "__main__":
    main()
