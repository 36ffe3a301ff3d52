"""A running crawl is spoken to through a socket in its folder."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from barkspider.core.errors import JobError, UsageError
from barkspider.engine import control
from barkspider.engine.control import LONGEST, SOCKET, Control, ask, listens
from tests.engine.serving import echo, serving


def connected(folder: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(str(folder / SOCKET))
    return connection


def lines(connection: socket.socket, data: bytes) -> list[dict[str, Any]]:
    """What is answered to some bytes after which the client says no more."""
    with connection, connection.makefile("rb") as file:
        with suppress(OSError):  # it may have been refused before
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        found: list[dict[str, Any]] = []
        with suppress(ConnectionResetError):  # by a server that did not read all of it
            found.extend(json.loads(line) for line in file)
        return found


def test_a_command_with_its_details_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path):
        assert ask(tmp_path, "status") == {"command": "status"}
        urls = ["http://a.example/\u00e9", "http://b.example/\n"]
        assert ask(tmp_path, "add", urls=urls) == {"command": "add", "urls": urls}
        assert listens(tmp_path)


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    with serving(tmp_path, lambda command, details: {}):
        assert ask(tmp_path, "pause") == {}


def test_one_connection_serves_several_requests(tmp_path: Path) -> None:
    with serving(tmp_path):
        requests = b'{"command": "status"}\n{"command": "stop", "details": {"now": true}}\n'
        found = lines(connected(tmp_path), requests)
        assert found == [{"command": "status"}, {"command": "stop", "now": True}]


def test_nobody_answers_where_no_crawl_runs(tmp_path: Path) -> None:
    assert ask(tmp_path, "status") is None
    assert ask(tmp_path / "none", "status") is None
    with serving(tmp_path):
        assert (tmp_path / SOCKET).exists()
    assert not (tmp_path / SOCKET).exists()
    assert ask(tmp_path, "status") is None
    assert not listens(tmp_path)


def test_a_socket_that_a_killed_crawl_left_is_no_crawl_and_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET))
    assert ask(tmp_path, "status") is None
    with serving(tmp_path):
        assert ask(tmp_path, "status") == {"command": "status"}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_deeper_than_the_name_of_a_socket_may_be_long(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["deep" * 10] * 10)
    deep.mkdir(parents=True)
    assert len(str(deep)) > 400
    with serving(deep):
        assert ask(deep, "status") == {"command": "status"}
        assert (deep / SOCKET).is_socket()
    assert ask(deep, "status") is None


def test_only_the_owner_may_connect_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with serving(tmp_path):
            assert (tmp_path / SOCKET).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_another_user_who_gets_through_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        size = 12

        def unpack(self, data: bytes) -> tuple[int, int, int]:
            return 1, os.geteuid() + 1, 1

    monkeypatch.setattr(control, "_CREDENTIALS", Other())
    with serving(tmp_path), pytest.raises(JobError, match="belongs to another user"):
        ask(tmp_path, "status")


def test_an_error_of_the_crawl_reaches_the_asker_and_the_crawl_goes_on(tmp_path: Path) -> None:
    def answer(command: str, details: dict[str, Any]) -> dict[str, Any]:
        if command == "add":
            raise UsageError("'x' is not a URL to crawl")
        if command == "pause":
            raise ZeroDivisionError("by zero")
        return {"state": "running"}

    with serving(tmp_path, answer):
        with pytest.raises(JobError, match="refuses: 'x' is not a URL to crawl"):
            ask(tmp_path, "add", urls=["x"])
        with pytest.raises(JobError, match="internal error: ZeroDivisionError"):
            ask(tmp_path, "pause")
        with pytest.raises(JobError, match="no command 'explode'; there are status, pause, go_on, stop, add"):
            ask(tmp_path, "explode")
        assert ask(tmp_path, "status") == {"state": "running"}


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n",
        b"\xff\x00\n",
        b"[]\n",
        b"7\n",
        b'{"details": {}}\n',
        b'{"command": ["status"]}\n',
        b'{"command": "status", "details": []}\n',
        b'{"command": {"a": "' + b"x" * 10_000 + b'"}}\n',
        b"[" * 100_000 + b"\n",
        b"9" * 100_000 + b"\n",
    ],
    ids=range(11),
)
def test_garbage_gets_an_error_and_the_next_line_an_answer(tmp_path: Path, garbage: bytes) -> None:
    with serving(tmp_path):
        error, answer = lines(connected(tmp_path), garbage + b'{"command": "status"}\n')
        assert list(error) == ["error"]
        assert len(error["error"]) < 200
        assert answer == {"command": "status"}


def test_a_line_without_an_end_is_not_a_request(tmp_path: Path) -> None:
    with serving(tmp_path):
        assert lines(connected(tmp_path), b'{"command": "status"}') == []


def test_a_huge_line_is_refused_and_the_connection_closed(tmp_path: Path) -> None:
    with serving(tmp_path):
        found = lines(connected(tmp_path), b"x" * (4 * LONGEST) + b'\n{"command": "status"}\n')
        assert found in ([], [{"error": "a line of more than 1,048,576 bytes"}])
        assert ask(tmp_path, "status") == {"command": "status"}
    with pytest.raises(JobError, match="too long; send it in parts"):
        ask(tmp_path, "add", urls=["x" * LONGEST])


def test_more_clients_than_there_is_room_for_are_refused_until_others_leave(tmp_path: Path) -> None:
    with serving(tmp_path):
        others = [connected(tmp_path) for _ in range(control._CLIENTS)]
        for other in others:  # each is served before the next question
            other.sendall(b'{"command": "status"}\n')
            assert other.recv(1000) == b'{"command": "status"}\n'
        with pytest.raises(JobError, match="16 others talk to this crawl already"):
            ask(tmp_path, "status")
        assert lines(others[0], b"") == []
        assert ask(tmp_path, "status") == {"command": "status"}
        for other in others[1:]:
            other.close()


def test_a_client_that_says_nothing_is_left_after_a_while(tmp_path: Path) -> None:
    with serving(tmp_path, timeout=0.05), connected(tmp_path) as silent:
        silent.sendall(b'{"comm')
        assert silent.recv(1000) == b""


def test_closing_leaves_clients_that_are_connected(tmp_path: Path) -> None:
    with connected_while_serving(tmp_path) as client:
        pass
    with client:
        assert client.recv(1000) == b""


@contextmanager
def connected_while_serving(folder: Path) -> Iterator[socket.socket]:
    with serving(folder):
        yield connected(folder)


def test_a_crawl_that_does_not_answer_in_time_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(tmp_path / SOCKET))
        busy.listen(1)
        with pytest.raises(JobError, match=r"did not answer within 0\.05 s; it is busy"):
            ask(tmp_path, "status", timeout=0.05)
        assert listens(tmp_path)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "went away before it answered"),
        (b"hello\n", "does not answer as a crawl does"),
        (b"[1]\n", "does not answer as a crawl does"),
        (b'{"state": "runn', "does not answer as a crawl does"),
        (b"[" * 100_000 + b"\n", "does not answer as a crawl does"),
        (b"x" * (LONGEST + 10), "does not answer as a crawl does"),
        (b'{"error": "no room"}\n', "refuses: no room"),
    ],
    ids=range(7),
)
def test_a_wrong_answer_is_one_clear_line(tmp_path: Path, answer: bytes, message: str) -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            with suppress(BrokenPipeError):
                connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(JobError, match=message) as caught:
            ask(tmp_path, "status")
        thread.join(30)
    assert "\n" not in str(caught.value)


def test_a_folder_of_somebody_else_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(folder: Path) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(control, "_open_folder", denied)
    with pytest.raises(JobError, match=r"cannot speak to the crawl in .*: Permission denied"):
        ask(tmp_path, "status")


def test_a_socket_that_cannot_be_made_is_an_error_of_the_job(tmp_path: Path) -> None:
    (tmp_path / SOCKET).mkdir()
    for folder, why in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(JobError, match=why):
            asyncio.run(Control(folder, echo).start())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_closing_twice_or_before_the_start_does_nothing(tmp_path: Path, run: Callable[[Any], None]) -> None:
    async def main() -> None:
        served = Control(tmp_path, echo)
        await served.close()
        await served.start()
        assert listens(tmp_path)
        await served.close()
        await served.close()

    run(main())
    assert list(tmp_path.iterdir()) == []
