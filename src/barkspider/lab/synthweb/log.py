"""The record of requests: to a file, line by line, or in memory."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class LoggedRequest(NamedTuple):
    """One request: when it came (seconds since 1970), to which of our addresses, and what was answered.

    >>> LoggedRequest.parse("1700000000.000001\\t127.16.0.1\\tx.com\\t/\\t200").path
    '/'
    """

    time: float
    address: str
    host: str
    path: str
    status: int

    @classmethod
    def parse(cls, line: str) -> LoggedRequest:
        """An entry from a line of a log file."""
        time, address, host, path, status = line.rstrip("\n").split("\t")
        return cls(float(time), address, host, path, int(status))


class RequestLog:
    """Takes entries on the server's loop. A file has each of them before its answer is sent, so that
    whoever has an answer finds its request in the log."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[LoggedRequest] = []
        """The entries kept in memory, where there is no file."""
        self._file = path.open("a", encoding="utf-8", newline="\n", buffering=1) if path else None

    def add(self, time: float, address: str, host: str, path: str, status: int) -> None:
        """Records a request; a closed connection has the status 0."""
        if self._file is None:
            self.entries.append(LoggedRequest(time, address, host, path, status))
            return
        # What a client sends may hold anything but line ends and spaces; a tab would shift the columns.
        self._file.write(f"{time:.6f}\t{address}\t{host}\t{path}\t{status}\n".replace("\r", "%0D"))

    def close(self) -> None:
        """Closes the file."""
        if self._file:
            self._file.close()


def read_log(path: Path) -> list[LoggedRequest]:
    """All entries of a log file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     print(1.5, "127.16.0.1", "x.com", "/", 200, sep="\\t", file=file, flush=True)
    ...     read_log(Path(file.name))[0].host
    'x.com'
    """
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [LoggedRequest.parse(line) for line in lines]
