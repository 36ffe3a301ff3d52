"""One connection and the exchanges on it, over a socket of our own.

    connect ─► (tunnel of a proxy) ─► (TLS) ─► request ─► message ─► idle ─► request …

Each step is a method that is called when the socket is ready and either waits for the next call or goes
on to the next step. An exchange ends at the first of: the message is complete, a limit is passed, a
deadline is over, the peer has closed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import ssl
import termios
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from barkspider.fetch.exchange import NO_FILES, HttpExchange, Timing
from barkspider.fetch.message import Message
from barkspider.fetch.poll import ENDED, READABLE
from barkspider.fetch.proxy import ProxyError
from barkspider.fetch.target import PIECE, Shared, Target
from barkspider.fetch.tls import TlsSession

_SEALED_PIECE = 8 * 1024  # the most for TLS, whose buffer an idle connection keeps
_OUT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # what the system has none left of
_NONE = bytes(4)  # bytes that can be read, as the system counts them
_NEVER = float("inf")
# Bytes that an idle connection takes: ours, and with TLS that of OpenSSL, 22 KB and what it keeps of its buffers.
_PLAIN, _SEALED = 1_000, 49_000
_STREAM = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
_NOT_YET = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError, InterruptedError)


class Connection:
    """A connection that carries one exchange at a time. Lives on its loop's thread.

    `idle` says whether another exchange may follow.
    """

    __slots__ = (
        "_began",
        "_connected",
        "_deadline",
        "_done",
        "_early",
        "_first",
        "_handshake",
        "_last",
        "_message",
        "_number",
        "_outgoing",
        "_paused",
        "_phase",
        "_received",
        "_request",
        "_secured",
        "_sent",
        "_shared",
        "_socket",
        "_step",
        "_target",
        "_tls",
        "_watched",
        "_window_size",
        "held",
        "idle",
    )

    def __init__(self, shared: Shared, target: Target) -> None:
        self._shared, self._target = shared, target
        self._socket: socket.socket | None = None
        self._number = -1  # of the socket, for the poller
        self._tls: TlsSession | None = None
        self._done: Callable[[HttpExchange], None] | None = None
        # A plain function, not a method bound to us: that would be a cycle for the collector to find.
        self._step: Callable[[Connection, int], None] = Connection._on_connected
        self._watched = _NEVER  # when the wheel will look at us
        self._deadline = self._last = 0.0
        self._paused = 0.0
        self._early = (
            False  # whether the peer spoke before it was spoken to: what follows may be late by one answer
        )
        self._window_size = 0
        self.held = 0  # what the message takes; the intake counts it
        self.idle = False

    @property
    def weight(self) -> int:
        """Bytes that it takes while it is idle."""
        return _PLAIN if self._target.tls is None else _SEALED

    def is_quiet(self) -> bool:
        """Whether this idle connection can carry another exchange; if not, it is closed.

        It cannot when the peer has said anything by now: that would be taken for the answer.
        """
        if self._socket is None:
            return False
        if self._tls is not None:
            try:
                self._receive()  # which also takes in what TLS has to say for itself
            except _NOT_YET:
                return True
            except OSError:
                pass
        elif fcntl.ioctl(self._number, termios.FIONREAD, _NONE) == _NONE:
            return True
        self.close()
        return False

    def exchange(self, request: bytes, any_type: bool, done: Callable[[HttpExchange], None]) -> None:
        """Send a request, connecting first if need be; `done` is called once, maybe at once, and opens no socket."""
        settings = self._shared.settings
        self._done, self._message = done, Message(settings, any_type)
        self._request, self._outgoing = request, b""
        self._began = self._connected = self._secured = self._sent = monotonic()
        self._first = 0.0
        self._received = 0
        self._last = self._began + settings.timeout
        self.idle = False
        if self._socket is None:
            self._await_until("timeout_connect", self._began + settings.connect_timeout)
            self._connect()
        else:
            self._send_request()

    def close(self) -> None:
        """Hang up. An exchange that is under way is given up: nobody is told how it ended."""
        if self._done is not None:
            self._done = None
            self._shared.intake.ended(self)
        closing, self._socket, self._tls = self._socket, None, None
        if closing is not None:
            self._shared.poller.forget(self._number)
            closing.close()
        if self._watched < _NEVER:
            self._shared.deadlines.forget(self, self._watched)
            self._watched = _NEVER

    def give_up(self) -> None:
        """End, as if there had been no file handle, unless something was received."""
        if self._done is not None and not self._received:
            self._fail(NO_FILES, "the disk needs the file handles")

    # ── steps: each is called when the socket is ready ─────────────────────────────────────────

    def _connect(self) -> None:
        address, port = self._target.address, self._target.port
        if self._target.proxy is not None:
            address, port = self._target.proxy[1], self._target.proxy[0].port
        if self._shared.poller.is_full:
            return self._fail(NO_FILES, "the disk needs the file handles")
        try:
            opened = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, _STREAM)
            self._socket = opened
            code = opened.connect_ex((address, port))
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
            self._number = opened.fileno()
            self._shared.poller.watch(self._number, self)
        except OSError as error:
            return self._fail(NO_FILES if error.errno in _OUT_OF else "connect_failed", str(error))

    def ready(self, events: int) -> None:
        """Called by the poller."""
        self._step(self, events)

    def _on_connected(self, events: int) -> None:
        assert self._socket is not None
        if events & ENDED:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return self._fail("connect_failed", os.strerror(code) if code else "closed at once")
        self._early = bool(events & READABLE)
        self._connected = self._secured = monotonic()
        if self._target.proxy is not None:
            self._handshake = self._target.proxy[0].handshake(self._target.address, self._target.port)
            self._step, self._phase = Connection._on_tunnel, "proxy_error"
            return self._on_tunnel(0)
        return self._secure()

    def _on_tunnel(self, _events: int) -> None:
        """Speak to the proxy until it has opened a tunnel."""
        assert self._socket is not None
        try:
            while True:
                if self._handshake.send:
                    sent = self._socket.send(self._handshake.send)
                    self._handshake.send = self._handshake.send[sent:]
                    continue
                data = self._socket.recv(PIECE)
                if not data:
                    raise ProxyError("closed by the proxy")
                if self._handshake.feed(data):
                    break
        except _NOT_YET:
            return None
        except (ProxyError, OSError) as error:
            return self._fail("proxy_error", str(error))
        self._connected = self._secured = monotonic()
        return self._secure()

    def _secure(self) -> None:
        if self._target.tls is None:
            return self._send_request()
        self._phase = "timeout_tls"
        try:
            self._tls = TlsSession(self._target.tls, self._target.name)
        except (OSError, ValueError) as error:
            return self._fail("tls_error", str(error))
        self._step = Connection._on_secured
        return self._on_secured(0)

    def _on_secured(self, _events: int) -> None:
        assert self._tls is not None
        try:
            while not self._tls.shake_hands():
                self._send()
                self._feed(self._tls)
        except _NOT_YET:
            return None
        except ssl.SSLCertVerificationError as error:
            with suppress(OSError):
                self._send()  # the server may want to know why
            return self._fail("tls_certificate", error.verify_message)
        except (OSError, ValueError) as error:
            return self._fail("tls_error", getattr(error, "reason", None) or str(error))
        self._secured = monotonic()
        return self._send_request()

    def _feed(self, tls: TlsSession) -> None:
        """Give TLS what the socket has. Raises `OSError`, also when there is nothing."""
        assert self._socket is not None
        buffer = self._shared.buffer
        tls.feed(buffer[: self._socket.recv_into(buffer, _SEALED_PIECE)])

    def _receive(self) -> int:
        """Read into the buffer; 0 when the peer has closed. Raises `OSError`, also when there is nothing."""
        assert self._socket is not None
        if self._tls is None:
            return self._socket.recv_into(self._shared.buffer)
        while True:
            if not self._tls.has_input:
                self._feed(self._tls)
            size = self._tls.read(self._shared.buffer)
            if size is not None:
                return size
            self._send()  # the peer may want a new key, or the like

    def _send_request(self) -> None:
        self._sent = monotonic()
        self._await_until("timeout_headers", self._sent + self._shared.settings.header_timeout)
        try:
            if self._tls is None:
                self._outgoing = self._request
            else:
                self._tls.write(self._request)
        except OSError as error:
            return self._fail("disconnected", str(error))
        self._step = Connection._on_writable
        return self._on_writable(READABLE if self._early else 0)  # what came early is told only once

    def _send(self) -> None:
        """Send what is to be sent, as far as it goes. Raises `OSError`."""
        assert self._socket is not None
        if self._tls is not None:
            self._outgoing += self._tls.outgoing()
        if self._outgoing:
            try:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
            except _NOT_YET:
                return

    def _on_writable(self, events: int) -> None:
        """Send what is left of the request; the answer may come before all of it is gone."""
        try:
            self._send()
        except OSError as error:
            return self._fail("disconnected", str(error))
        if not self._outgoing:
            self._step = Connection._on_readable
        return self._on_readable(events) if events else None

    def _on_readable(self, events: int) -> None:
        if self._done is None:  # an idle connection: the peer has closed, or says what nobody asked for
            self.close()
        elif not self._paused:
            while self._read_piece(events):
                pass

    def _read_piece(self, events: int) -> bool:
        """Read what is there; whether there may be more, which there is not after a short read.

        Unless the peer has closed, which is told only once, or TLS holds something back.
        """
        shared = self._shared
        assert self._socket is not None
        if not shared.intake.may_read(self):
            self._paused = monotonic()
            return False
        try:
            size = self._receive()
        except _NOT_YET:
            return False
        except OSError as error:
            self._broken(getattr(error, "reason", None) or str(error))
            return False
        if size == 0:
            self._message.end()
            self._finish()
            return False
        if not self._first:
            self._first = monotonic()
        self._received += size
        message = self._message
        speaking, over = message.speaking, message.feed(shared.buffer[:size])
        shared.intake.took(self, size, message.held)
        if over:
            self._finish()
            return False
        if message.speaking and not speaking:
            self._begin_body()
        return size == PIECE or bool(events & ENDED) or self._target.tls is not None

    # ── deadlines and pauses ───────────────────────────────────────────────────────────────────

    def check(self, now: float) -> float | None:
        """Called by the wheel of deadlines: end what is over."""
        self._watched = _NEVER
        if self._done is None:
            return None
        waits = self._paused and (now < self._last or self._shared.intake.is_limited)
        if waits or now < self._deadline:
            again = max(self._deadline, now + 1.0) if waits else self._deadline
            self._watched = again
            return again
        if not self._message.speaking:
            self._fail(self._phase, "no answer in time")
            return None
        size, self._window_size = self._received - self._window_size, self._received
        if now >= self._last:
            self._message.stop("time")
        elif size < self._shared.settings.min_rate * self._shared.settings.rate_window:
            self._message.stop("rate")
        else:
            self._deadline = self._watched = min(now + self._shared.settings.rate_window, self._last)
            return self._deadline
        self._finish()
        return None

    def resume(self) -> None:
        """Called by the intake: read on.

        That it waited makes no message slow; but the whole fetch waits for a bandwidth alone, not for memory that others
        hold.
        """
        waited, self._paused = monotonic() - self._paused, 0.0
        if self._done is None:
            return
        if self._shared.intake.is_limited:
            self._last += waited
        self._deadline = min(self._deadline + waited, self._last)
        self._on_readable(ENDED)  # whether the peer has closed meanwhile is not known: read to the end

    def cut(self) -> None:
        """Called by the intake: others need the memory."""
        self._message.stop("memory", "timeout_headers", "too slow for the memory it took")
        self._finish()

    def _begin_body(self) -> None:
        self._window_size = self._received
        self._await_until("", monotonic() + self._shared.settings.rate_window)

    def _await_until(self, phase: str, deadline: float) -> None:
        self._phase, self._deadline = phase, min(deadline, self._last)
        self._watch()

    def _watch(self) -> None:
        # A deadline that comes later is found when the earlier one is looked at.
        if self._deadline < self._watched:
            self._watched = self._deadline
            self._shared.deadlines.watch(self, self._deadline)

    # ── ends ───────────────────────────────────────────────────────────────────────────────────

    def _fail(self, failure: str, detail: str) -> None:
        self._message.stop("", failure, detail)
        self._finish()

    def _broken(self, detail: str) -> None:
        self._message.stop("disconnect", "disconnected", detail)
        self._finish()

    def _finish(self) -> None:
        done, self._done = self._done, None
        assert done is not None
        message = self._message
        now = monotonic()
        claim = self._shared.intake.ended(self)
        spoken = not self._outgoing and not self._early
        self.idle = message.keep_alive and spoken and self._socket is not None
        if not self.idle:
            self.close()
        result = message.exchange()
        result.claim = claim
        del self._message  # an idle connection needs neither
        self._request = b""
        first = self._first or now
        result.timing = Timing(
            self._connected - self._began, self._secured - self._connected, first - self._sent, now - first
        )
        done(result)
