"""A small web server for one docket: its page, its pictures, and its file of decisions."""

from __future__ import annotations

import csv
import hmac
import json
import mimetypes
import os
import socket
import threading
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from appellate.cli.cells import restore
from appellate.cli.decisions import COLUMNS, KINDS, as_line
from appellate.report import NO_CONNECTION

DECISIONS = "decisions.csv"
_OWN_CONNECTION = "connect-src 'self'"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif")
_LARGEST_BODY = 1 << 20
_COOKIE = "appellate"
_DATA = '<script type="application/json" id="data">'


class DocketServer(ThreadingHTTPServer):
    """Serves one folder; decisions are appended under a lock and forced to disk."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], folder: Path, token: str | None) -> None:
        self.folder = folder.resolve(strict=True)
        self.token = token
        self.lock = threading.Lock()
        self._named: tuple[Any, frozenset[str]] = (None, frozenset())
        super().__init__(address, _Handler)

    def address(self) -> str:
        """Return the address to open, with the token if there is one."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/" + (f"?token={quote(self.token)}" if self.token else "")

    def append(self, record: dict[str, Any]) -> None:
        """Add one decision as one write; an earlier one is never changed."""
        path = self.folder / DECISIONS
        with self.lock:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            handle = os.open(path, flags, 0o644)
            try:
                empty = os.fstat(handle).st_size == 0
                head = ",".join(COLUMNS) + "\n" if empty else ""
                os.write(handle, (head + as_line(record)).encode())
                os.fsync(handle)
            finally:
                os.close(handle)

    def decided(self) -> list[dict[str, str]]:
        """Return all decisions on disk, the earliest first; a torn last line is left out."""
        path = self.folder / DECISIONS
        if not path.is_file() or path.is_symlink():
            return []
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            {name: restore(row[name]) for name in COLUMNS}
            for row in rows
            if all(isinstance(row.get(name), str) for name in COLUMNS)
        ]

    def page(self) -> bytes:
        """Return the page, allowed to talk to this server and told that there is one."""
        text = (self.folder / "docket.html").read_text(encoding="utf-8")
        # The policy stands in an attribute, where quotes are escaped, before all that is not ours.
        text = text.replace(NO_CONNECTION.replace("'", "&#39;"), _OWN_CONNECTION, 1)
        mark = '<meta name="appellate-key"'
        return text.replace(
            mark, f'<meta name="appellate-server" content="1">\n{mark}', 1
        ).encode()

    def picture(self, path: str) -> Path | None:
        """Return a picture that the page names, by the same words; None for any other path."""
        if path not in self._pictures():
            return None
        try:
            file = (self.folder / path).resolve(strict=True)
        except (OSError, ValueError):
            return None
        return file if file.is_file() and file.suffix.lower() in _PICTURES else None

    def _pictures(self) -> frozenset[str]:
        """Return the paths in the data of the page, read again when it was written anew."""
        try:
            page = self.folder / "docket.html"
            stat = page.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if self._named[0] != stamp:
                data = page.read_text(encoding="utf-8").partition(_DATA)[2].partition("</script>")
                images = json.loads(data[0])["images"] or []
                self._named = (stamp, frozenset(filter(None, images)))
        except (OSError, ValueError, TypeError, KeyError):
            return frozenset()
        return self._named[1]


class _Server6(DocketServer):
    address_family = socket.AF_INET6


def make_server(folder: Path, host: str, port: int, token: str | None = None) -> DocketServer:
    """Bind a server for a folder; `serve_forever` starts it."""
    kind = _Server6 if ":" in host else DocketServer
    return kind((host, port), folder, token)


class _Handler(BaseHTTPRequestHandler):
    server: DocketServer
    server_version = "appellate"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        if not self._host_is_ours():
            self._refuse(HTTPStatus.FORBIDDEN, "unknown host")
        elif self.server.token and self._token_in(split.query):
            self._enter()
        elif not self._may_enter():
            self._refuse(HTTPStatus.FORBIDDEN, "open the address with its token")
        elif split.path in ("/", "/docket.html"):
            self._answer(self.server.page(), "text/html; charset=utf-8")
        elif split.path == "/decisions":
            with self.server.lock:
                content = json.dumps(self.server.decided()).encode()
            self._answer(content, "application/json")
        elif split.path == "/picture":
            self._send_picture(unquote(split.query))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page")

    def do_POST(self) -> None:
        if not (self._host_is_ours() and self._may_enter() and self._origin_is_ours()):
            self._refuse(HTTPStatus.FORBIDDEN, "not from this page")
            return
        if self.path != "/decisions" or self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.NOT_FOUND, "decisions are posted to /decisions as JSON")
            return
        record = self._body()
        if record is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "not a decision")
            return
        try:
            self.server.append(record)
        except OSError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, error.strerror or "not written")
            return
        self._answer(b"{}", "application/json")

    def _body(self) -> dict[str, Any] | None:
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 < length <= _LARGEST_BODY:
                return None
            record = json.loads(self.rfile.read(length))
        except ValueError:
            return None
        if not isinstance(record, dict) or record.get("decision") not in KINDS:
            return None
        if not all(isinstance(record.get(name, ""), str) for name in COLUMNS):
            return None
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        return {name: record.get(name, "") for name in COLUMNS[:3]} | {"time": stamp}

    def _send_picture(self, path: str) -> None:
        file = self.server.picture(path)
        if file is None:
            self._refuse(HTTPStatus.NOT_FOUND, "no picture that the page names")
            return
        self._answer(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "image/png")

    # -- who may come in ----------------------------------------------------------------

    def _host_is_ours(self) -> bool:
        """Refuse names that merely resolve to this machine, unless a token guards it."""
        if self.server.token:
            return True
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        return name in ("127.0.0.1", "localhost", "::1")

    def _origin_is_ours(self) -> bool:
        origin = self.headers.get("Origin")
        return origin is None or urlsplit(origin).netloc == self.headers.get("Host")

    def _token_in(self, query: str) -> bool:
        given = parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), (self.server.token or "").encode())

    def _may_enter(self) -> bool:
        if not self.server.token:
            return True
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
        except CookieError:
            return False
        given = unquote(cookie.value) if cookie else ""
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _enter(self) -> None:
        """Keep the token in a cookie, so that it leaves the address."""
        self.send_response(HTTPStatus.SEE_OTHER)
        value = quote(self.server.token or "", safe="")
        self.send_header("Set-Cookie", f"{_COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    # -- answers ------------------------------------------------------------------------

    def _answer(self, content: bytes, kind: str, status: int = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True
        self._answer(f"{reason}\n".encode(), "text/plain; charset=utf-8", status)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing for every request."""
