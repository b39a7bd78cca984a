"""A small web server for one folder: its review page, its images, and its file of decisions."""

from __future__ import annotations

import hashlib
import hmac
import json
import mimetypes
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from appellate._files import MemberError, WriteError, is_own, read_member
from appellate.core.explanation import Explanation
from appellate.review.decisions import COLUMNS, DECISIONS, KINDS, DecisionError, DecisionFile, Rows
from appellate.review.page import PageError, read_page, render_page, unpack_page

__all__ = ["DocketServer", "serve"]

PAGE = "docket.html"
_TOKEN = ".appellate-token"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif")
_LARGEST_BODY = 1 << 20
_LONGEST_KEY = 200
_LONGEST_NOTE = 2000
_SHORTEST_TOKEN = 16
_MOST_CONNECTIONS = 64
_SECONDS = 20.0  # within which a request has to arrive
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def serve(
    folder: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8088,
    token: str | None = None,
    ready: Callable[[str], object] = lambda address: None,
    explain: Callable[[str], Explanation] | None = None,
) -> None:
    """Serve the review page of a folder until Ctrl-C; decisions go to its ``decisions.csv``.

    Parameters
    ----------
    folder : str or path
        What `rectify` wrote: ``docket.html`` and the other files of the run.
    host, port : str and int, default="127.0.0.1", 8088
        Where to listen; port 0 for any.
    token : str, default=None
        Secret of the address; by default a random one, kept in the folder, so that a server
        that is started again knows the pages that are still open.
    ready : callable, default=no-op
        Called with the address, token included, once the server listens.
    explain : callable, default=None
        Explains a row by its name, such as ``appellate.load(folder).explain``: called for rows
        whose explanation is not on the page.

    Examples
    --------
    >>> serve("birds", ready=print)  # doctest: +SKIP
    http://127.0.0.1:8088/?token=...
    """
    with DocketServer(Path(folder), host, port, token, explain) as server:
        ready(server.address())
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


class _Docket(NamedTuple):
    """A page that was read: its content, and when it was written."""

    stamp: tuple[int, ...]
    page: bytes
    rows: Rows
    images: frozenset[str]


class DocketServer(ThreadingHTTPServer):
    """Serves one folder, once its `serve_forever` is called."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        folder: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        explain: Callable[[str], Explanation] | None = None,
    ) -> None:
        self.folder, self.host = folder.resolve(strict=True), host
        self._explain, self._explaining = explain, threading.Lock()
        self.token = token or _kept_token(self.folder)
        self.decisions = DecisionFile(self.folder / DECISIONS)
        self._lock = threading.Lock()
        self._read: _Docket | None = None
        self._waiting: dict[Any, float] = {}  # connections whose request has not arrived, since
        self._places = threading.Lock(), threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self.decisions.read()
        self.docket()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def address(self) -> str:
        """Return the address to open, with the token."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/?token={quote(self.token)}"

    def docket(self) -> _Docket:
        """Return the page; it is read again when it was written again."""
        path = self.folder / PAGE
        with self._lock:
            found = path.lstat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if self._read is None or self._read.stamp != stamp:
                data = read_page(path)
                name = hashlib.sha256(str(self.folder).encode("utf-8", "surrogateescape"))
                server = {"endpoint": "decisions", "token": self.token,
                          "folder": name.hexdigest()[:16],
                          "explains": self._explain is not None}  # fmt: skip
                try:
                    rows, images = (
                        _find_rows(data),
                        frozenset(filter(None, data.get("images") or ())),
                    )
                    page = render_page(data, server).encode()
                except ImportError:
                    raise
                except Exception as error:  # whatever a changed page leads to
                    raise PageError(
                        f"'{path}' is damaged ({type(error).__name__}: {error}). Write it again "
                        "with rectify."
                    ) from error
                self._read = _Docket(stamp, page, rows, images)
            return self._read

    def decide(self, records: Iterable[dict[str, str]]) -> list[str]:
        """Check decisions and write them to disk; one that exists already is not repeated.

        Returns
        -------
        list of str
            Why each decision is refused; empty for those that are on disk now.

        Raises
        ------
        _Refused
            If the page is not the one that the decisions were made on; none is written then.
        """
        rows = self.docket().rows
        reasons = []
        taken = []
        for record in records:
            if record["data"] != rows.data:
                raise _Refused(HTTPStatus.CONFLICT, "the page was written again: reload it")
            known = record["id"] in rows.places
            reason = rows.refusal(record) if known else f"no row is called {record['id']!r}"
            reasons.append(reason)
            if not reason:
                candidates = rows.separator.join(rows.candidates(rows.places[record["id"]]))
                taken.append(record | {"candidates": candidates})
        if taken:
            self.decisions.extend(taken)
        return reasons

    def why(self, name: str) -> dict[str, Any]:
        """Return why a row has its label, as the data of a page have it.

        Raises
        ------
        _Refused
            If the row does not exist or cannot be explained: why not.
        """
        rows = self.docket().rows
        if name not in rows.places or self._explain is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "there is no such explanation")
        try:
            with self._explaining:  # so that two requests do not load two models
                why = self._explain(name)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            raise _Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        names, shown = list(rows.classes), why.to_page()
        shown["labels"] = [names.index(str(why.classes[j])) for j in shown["labels"]]
        pairs = zip(why.neighbors, shown["neighbours"], strict=False)
        shown["neighbours"] = [[rows.places[near.name], weight] for near, (_, weight) in pairs]
        return shown

    def picture(self, path: str) -> Path | None:
        """Return an image that the page names, by the same words; None for any other path."""
        if path not in self.docket().images:
            return None
        try:
            file = (self.folder / path).resolve(strict=True)
        except (OSError, ValueError):
            return None
        return file if file.is_file() and file.suffix.lower() in _PICTURES else None

    # -- connections --------------------------------------------------------------------

    def is_own_host(self, host: str, reached: str) -> bool:
        """Tell whether a request names this server: `reached` is the address that it came to.

        A page of another site whose name was made to point here names that site instead.
        """
        names = {"localhost", "127.0.0.1", "[::1]", self.host, socket.gethostname(), reached}
        port = int(self.server_address[1])
        allowed = {f"[{n}]" if ":" in n and n[0] != "[" else n for n in map(str.lower, names)}
        exact = {f"{name}:{port}" for name in allowed} | (allowed if port == 80 else set())
        return host.lower() in exact

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; of too many connections those end whose request does not come."""
        lock, places = self._places
        if not places.acquire(blocking=False):
            with lock:
                oldest = min(self._waiting, key=self._waiting.__getitem__, default=None)
            if oldest is not None:
                self._hang_up([oldest])
            if oldest is None or not places.acquire(timeout=1):
                with suppress(OSError):
                    request.settimeout(0)
                    request.sendall(_BUSY)
                self.shutdown_request(request)
                return
        with lock:
            self._waiting[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection, and accept another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def has_arrived(self, request: Any) -> None:
        """Note that a request is here: no deadline any more."""
        with self._places[0]:
            self._waiting.pop(request, None)

    def _leave(self, request: Any) -> None:
        self.has_arrived(request)
        self._places[1].release()

    def service_actions(self) -> None:
        """End connections whose request does not arrive in time; called twice a second."""
        now = time.monotonic()
        with self._places[0]:
            late = [each for each, since in self._waiting.items() if now - since > _SECONDS]
        self._hang_up(late)

    def _hang_up(self, requests: Iterable[Any]) -> None:
        for each in requests:
            self.has_arrived(each)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a browser closes the connection."""


def _find_rows(data: Mapping[str, Any]) -> Rows:
    """Return the rows of a page, or raise any error if it does not say them as it should."""
    ids = data["ids"]
    classes = data["classes"]
    table = data["table"]
    starts, labels = (unpack_page(data[key]) for key in ("starts", "labels"))
    texts = [*(ids or ()), *classes, *filter(None, data.get("images") or ()), table]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("names are not texts")
    n = len(starts) - 1
    fits = (
        n >= 0
        and starts[0] == 0
        and starts[-1] == len(labels)
        and (starts[1:] >= starts[:-1]).all()
    )
    if not fits or (ids is not None and len(ids) != n):
        raise ValueError("rows and candidates do not fit together")
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(classes):
        raise ValueError("candidates are not among the labels")
    return Rows(ids, classes, starts.tolist(), labels.tolist(), table)


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _check(record: Any) -> dict[str, str]:
    """Return the texts of a decision that a page has sent, or refuse it."""
    if not isinstance(record, dict) or record.get("decision") not in KINDS:
        raise _Refused(HTTPStatus.BAD_REQUEST, "not a decision")
    texts = {name: record.get(name, "") for name in COLUMNS}
    for text in texts.values():
        if not isinstance(text, str) or "\0" in text:
            raise _Refused(HTTPStatus.BAD_REQUEST, "a decision is made of texts")
        text.encode()  # a lone surrogate cannot be written
    for name, most in (("key", _LONGEST_KEY), ("note", _LONGEST_NOTE)):
        if len(texts[name]) > most:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the {name} has more than {most} characters")
    return texts


class _Handler(BaseHTTPRequestHandler):
    server: DocketServer
    server_version = "appellate"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer whatever goes wrong; a docket that is just being replaced is a matter of time."""
        try:
            self._route(urlsplit(self.path))
        except _Refused as refused:
            self._refuse(refused.status, str(refused))
        except ConnectionError:
            self.close_connection = True
        except TimeoutError:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive")
        except FileNotFoundError:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the page is being written; try again")
        except OSError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, error.strerror or "not written")
        except DecisionError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except PageError as error:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "not a request of the page")

    do_POST = do_GET

    def _check_host(self) -> None:
        """Refuse requests that another site has sent, or that were meant for another one."""
        reached = str(self.connection.getsockname()[0])
        hosts = self.headers.get_all("Host") or [""]
        origin = self.headers.get("Origin")
        named = [*hosts, *([] if origin is None else [origin.removeprefix("http://")])]
        if len(hosts) > 1 or not all(self.server.is_own_host(each, reached) for each in named):
            raise _Refused(
                HTTPStatus.FORBIDDEN, "open the address that the server printed, with its port"
            )

    def _route(self, split: SplitResult) -> None:
        self._check_host()
        posted = self.command == "POST"
        if not posted:
            self.server.has_arrived(self.connection)
        given = parse_qs(split.query).get("token")
        if not posted and given and self._is_token(given[0]):
            self._enter()
        elif not self._may_enter():
            raise _Refused(HTTPStatus.FORBIDDEN, "open the address that the server printed")
        elif posted:
            if self.path != "/decisions":
                raise _Refused(HTTPStatus.NOT_FOUND, "decisions are posted to /decisions")
            found, now = self._body(), datetime.now(UTC).isoformat(timespec="seconds")
            self.server.has_arrived(self.connection)
            several = isinstance(found, list) and len(found) > 0
            records = [_check(each) | {"time": now} for each in (found if several else [found])]
            reasons = self.server.decide(records)
            if not several and reasons[0]:
                raise _Refused(HTTPStatus.UNPROCESSABLE_ENTITY, reasons[0])
            self._answer(json.dumps(reasons if several else {}).encode(), "application/json")
        elif split.path in ("/", f"/{PAGE}"):
            self._answer(self.server.docket().page, "text/html; charset=utf-8")
        elif split.path == "/decisions":
            marks = parse_qs(split.query).get("since", [""])
            change = self.server.decisions.since(marks[0])
            self._answer(json.dumps(change._asdict()).encode(), "application/json")
        elif split.path == "/why":
            why = self.server.why(unquote(split.query))
            self._answer(json.dumps(why).encode(), "application/json")
        elif split.path == "/picture":
            file = self.server.picture(unquote(split.query))
            if file is None:
                raise _Refused(HTTPStatus.NOT_FOUND, "the page names no such image")
            kind = mimetypes.guess_type(file.name)[0] or "image/png"
            self._answer(file.read_bytes(), kind, cache="private, max-age=600")
        else:
            raise _Refused(HTTPStatus.NOT_FOUND, "no such page")

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a decision has a length")
        if int(length) > _LARGEST_BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long for a decision")
        return json.loads(self.rfile.read(int(length)))

    # -- who may come in ----------------------------------------------------------------

    @property
    def _cookie(self) -> str:
        """Name the cookie by the port: browsers share cookies between the ports of a host."""
        return f"appellate-{self.server.server_address[1]}"

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode())

    def _may_enter(self) -> bool:
        """Let the page in by its header, images and reloads by the cookie (same site only)."""
        scheme, _, bearer = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer":
            return self._is_token(unquote(bearer))
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie)
        except CookieError:
            return False
        given = unquote(cookie.value) if cookie else ""
        return self.command == "GET" and self._is_token(given)

    def _enter(self) -> None:
        """Keep the token in a cookie, so that it leaves the address."""
        value = quote(self.server.token, safe="")
        self.send_response(HTTPStatus.SEE_OTHER)
        cookie = f"{self._cookie}={value}; HttpOnly; SameSite=Strict; Path=/"
        self.send_header("Set-Cookie", cookie)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    # -- answers ------------------------------------------------------------------------

    def _answer(
        self, content: bytes, kind: str, status: int = HTTPStatus.OK, cache: str = "no-store"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cache-Control", cache)
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True
        content = f"{reason}\n".encode("utf-8", "replace")
        try:
            self._answer(content, "text/plain; charset=utf-8", status)
        except OSError:
            return  # whoever asked has gone

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing for every request."""


def _kept_token(folder: Path) -> str:
    """Return the token of a folder, which only its owner can read; make one if there is none.

    A token that others could have read or chosen is replaced.
    """
    token, stage = secrets.token_urlsafe(24), folder / f"{_TOKEN}-{secrets.token_hex(4)}"
    try:
        while True:
            if kept := _read_token(folder):
                return kept
            there = os.path.lexists(folder / _TOKEN)
            with open(os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(token)
            if there or not hasattr(os, "link"):
                os.replace(stage, folder / _TOKEN)  # a link in its place is not followed
                return token
            with suppress(FileExistsError):  # another server was faster: take its token
                os.link(stage, folder / _TOKEN)
            stage.unlink()
    except OSError as error:
        with suppress(OSError):
            stage.unlink()
        raise WriteError(
            f"decisions cannot be saved in '{folder}': {error.strerror or error}. Copy the folder "
            "to a place that you can write to, and serve the copy."
        ) from error


def _read_token(folder: Path) -> str:
    """Return the token that was kept; empty if there is none that is secret."""
    try:
        found = os.lstat(folder / _TOKEN)
        kept = read_member(folder, _TOKEN, 1000).decode("ascii").strip()
    except (FileNotFoundError, MemberError, UnicodeDecodeError):
        return ""
    private = os.name == "nt" or (is_own(found) and not stat.S_IMODE(found.st_mode) & 0o077)
    return kept if private and len(kept) >= _SHORTEST_TOKEN and kept.isprintable() else ""
