"""How a running crawl is spoken to: a socket in its folder, JOB/control.sock, for its owner alone.

    barkspider status JOB ─► ask ─► JOB/control.sock ─► Control ─► answer(command, details)

A request is one line, {"command": "add", "details": {"urls": [...]}}, and so is the answer, an object: what
`answer` returned, or {"error": "one line"}. A client may ask again on the same connection.

The name of a Unix socket has room for 107 bytes and job folders may be deep, so both sides name it by way of a
descriptor of the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from barkspider.core.errors import BarkspiderError, JobError
from barkspider.engine.folder import SOCKET

COMMANDS = (
    *("status", "pause", "go_on", "stop", "add", "checkpoint", "change", "block", "hosts", "history"),
    *("write_tables", "grant", "end"),
)
LONGEST = 1 << 20  # bytes of a line: thousands of URLs
_CLIENTS = 16  # at once: people and their scripts
_TIMEOUT = 10.0  # seconds for a line and for its answer: a merge may hold up the loop for some of them
_CREDENTIALS = struct.Struct("3i")  # process, user, group

Answer = Callable[[str, dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]]


class Control:
    """Serves the socket of a job on the running loop. Whoever starts it holds the job's lock.

    `answer` is called on the loop and returns at once; a `BarkspiderError` that it raises is what the client
    gets to read.
    """

    def __init__(self, folder: Path, answer: Answer, *, timeout: float = _TIMEOUT) -> None:
        self._folder, self._answer, self._timeout = folder, answer, timeout
        self._descriptor = -1  # of the folder
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        """Begin to listen; a socket that a killed crawl left is replaced."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Before it has a name, so that there is no moment at which others may connect.
            os.fchmod(listener.fileno(), 0o600)
            self._descriptor = _open_folder(self._folder)
            self._remove()
            listener.bind(_name(self._descriptor))
        except OSError as error:
            listener.close()
            self._close_folder()
            raise JobError(f"cannot make {self._folder / SOCKET}: {error.strerror}") from error
        self._server = await asyncio.start_unix_server(self._connected, sock=listener, limit=LONGEST)

    async def close(self) -> None:
        """Remove the socket and leave the clients; a second call does nothing."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self._remove()
        self._close_folder()
        for task, writer in self._clients.items():
            task.cancel()
            writer.close()  # a task that has not begun does not
        await asyncio.gather(*self._clients, return_exceptions=True)
        await server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refusal = self._refusal(writer)
        if refusal:
            writer.write(_line({"error": refusal}))
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients[task] = writer
        task.add_done_callback(self._clients.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        more = True
        try:
            while more:
                async with asyncio.timeout(self._timeout):
                    answer, more = await self._exchange(reader)
                    if answer is not None:
                        writer.write(_line(answer))
                        await writer.drain()
        except (TimeoutError, ConnectionError):
            pass  # a client that is too slow, or has gone
        finally:
            writer.close()

    def _refusal(self, writer: asyncio.StreamWriter) -> str:
        """Why this client is not served, or ""."""
        connection = writer.get_extra_info("socket")
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[1] not in (os.geteuid(), 0):
            return "this crawl belongs to another user"
        if len(self._clients) >= _CLIENTS:
            return f"{_CLIENTS} others talk to this crawl already; try again in a moment"
        return ""

    async def _exchange(self, reader: asyncio.StreamReader) -> tuple[dict[str, Any] | None, bool]:
        """The answer to the next line, none at the end, and whether another line may follow."""
        try:
            line = await reader.readline()
        except ValueError:  # what is left of the line would be taken for others
            return {"error": f"a line of more than {LONGEST:,} bytes"}, False
        if not line.endswith(b"\n"):
            return None, False
        try:
            request = json.loads(line)
            command, details = request["command"], request.get("details", {})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {"error": 'a line that is not a request; write it like {"command": "status"}'}, True
        if command not in COMMANDS or not isinstance(details, dict):
            return {"error": f"no command {str(command)[:50]!r}; there are {', '.join(COMMANDS)}"}, True
        try:
            answer = self._answer(command, details)
            return (answer if isinstance(answer, dict) else await answer), True
        except BarkspiderError as error:
            return {"error": str(error)}, True
        except Exception as error:  # a question must not end the crawl
            return {"error": f"internal error: {error!r}"}, True

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=self._descriptor)

    def _close_folder(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def ask(folder: Path, command: str, *, timeout: float = _TIMEOUT, **details: Any) -> dict[str, Any] | None:
    """What the crawl that runs in a job folder answers; None when none runs there.

    Raises `JobError` for an answer that is an error or none, and when there is no answer in time.
    """
    request = _line({"command": command, "details": details})
    if len(request) > LONGEST:
        raise JobError(f"a request of {len(request):,} bytes is too long; send it in parts")
    end = time.monotonic() + timeout
    connection = _connect(folder, timeout)
    if connection is None:
        return None
    line = bytearray()
    with connection:
        try:
            with suppress(BrokenPipeError):  # why it does not listen may be there to be read
                connection.sendall(request)
            while b"\n" not in line and len(line) <= LONGEST:
                connection.settimeout(max(end - time.monotonic(), 0.001))
                part = connection.recv(1 << 16)
                if not part:
                    break
                line += part
        except TimeoutError as error:
            raise _silent(folder, timeout) from error
        except ConnectionError as error:
            raise JobError(f"the crawl in {folder} went away before it answered; try again") from error
    if not line:
        raise JobError(f"the crawl in {folder} went away before it answered; try again")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not line.endswith(b"\n"):
        raise JobError(f"what listens at {folder / SOCKET} does not answer as a crawl does")
    if "error" in answer:
        raise JobError(f"the crawl in {folder} refuses: {answer['error']}")
    return answer


def listens(folder: Path) -> bool:
    """Whether a crawl runs in a job folder; it need not be able to answer now."""
    try:
        connection = _connect(folder, _TIMEOUT)
    except JobError:
        return True
    if connection is not None:
        connection.close()
    return connection is not None


def _connect(folder: Path, timeout: float) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        descriptor = _open_folder(folder)
        try:
            if not stat.S_ISSOCK(os.stat(SOCKET, dir_fd=descriptor, follow_symlinks=False).st_mode):
                raise ConnectionRefusedError  # a link, perhaps to the socket of another crawl
            connection.connect(_name(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        connection.close()
        if isinstance(error, FileNotFoundError | NotADirectoryError | ConnectionRefusedError):
            return None
        if isinstance(error, TimeoutError | BlockingIOError):
            raise _silent(folder, timeout) from error
        raise JobError(f"cannot speak to the crawl in {folder}: {error.strerror}") from error
    return connection


def _silent(folder: Path, timeout: float) -> JobError:
    return JobError(f"the crawl in {folder} did not answer within {timeout:g} s; it is busy, try again")


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _name(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}/{SOCKET}"


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
