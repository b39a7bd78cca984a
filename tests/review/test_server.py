"""The served page: decisions on disk at once, nothing outside the folder, tokens."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading

import numpy as np
import pytest

from appellate.review import page_data, write_page
from appellate.review.decisions import parse
from appellate.review.server import DocketServer
from tests.review.dockets import make_docket

pytest.importorskip("jinja2")
NAMED = ["cat.png", "../pics/a #1%.png", "../notes.txt", "../pics/gone.png", "../pics/link.png"]
TABLE = "sha256:00"
TOKEN = "a secret of some length;"


def write_docket(home, images=NAMED, ids=None, table=TABLE):
    n = 12
    candidates = np.ones((n, 3), bool)
    candidates[1, 2] = False
    shares = candidates / candidates.sum(axis=1, keepdims=True)
    docket = make_docket(
        n, 3, rounds=None, candidates=candidates, verdict_confidence=shares,
        appeal_confidence=shares, label_history=np.zeros((2, n), int), ids=ids,
        class_names=np.array(["cat", "dog", "=b\r"], dtype=object),
    )  # fmt: skip
    images = None if images is None else [*images, *[""] * (n - len(images))]
    write_page(page_data(docket, table=table, images=images), home / "docket.html")


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "run"
    home.mkdir()
    write_docket(home, ids=["@1", *(f"row {i}" for i in range(1, 12))])
    (home / "run.json").write_text("{}")
    (home / "cat.png").write_bytes(b"png")
    (home / "dog.png").write_bytes(b"secret")
    (tmp_path / "notes.txt").write_bytes(b"secret")
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "a #1%.png").write_bytes(b"beside")
    (tmp_path / "pics" / "link.png").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (home / "link.png").symlink_to(tmp_path / "secret.png")
    return home


@contextlib.contextmanager
def serving_from(folder, **options):
    with DocketServer(folder, token=TOKEN, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def serving(folder):
    with serving_from(folder) as server:
        yield server


def ask(server, path, body=None, **headers):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    method = "GET" if body is None else "POST"
    headers = {"Authorization": "Bearer a%20secret%20of%20some%20length%3B"} | headers
    if body is not None and not isinstance(body, str | bytes):
        body = json.dumps(body)
    named = {k.replace("_", "-"): v for k, v in headers.items()}
    with contextlib.closing(connection):
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer, answer.read()


def decision(name="row 1", kind="accept", label="cat", **more):
    return {"id": name, "decision": kind, "label": label, "data": TABLE, **more}


def test_the_page_may_talk_to_its_server_and_no_other(serving, folder):
    answer, content = ask(serving, "/")
    assert answer.status == 200
    assert b"connect-src &#39;self&#39;" in content
    assert b'"endpoint":"decisions"' in content
    assert b"connect-src &#39;none&#39;" in (folder / "docket.html").read_bytes()
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_decisions_are_appended_once(serving, folder):
    assert json.loads(ask(serving, "/decisions")[1]) == []
    for label, key in (("cat", "k1"), ("=b\r", "k2"), ("=b\r", "k2")):
        record = decision("@1", "other", label, time="forged", candidates="forged", key=key)
        assert ask(serving, "/decisions", record)[0].status == 200
    content = (folder / "decisions.csv").read_bytes().decode()
    assert content.count("\n") == 3
    assert "\n'@1,other,cat,2" in content
    assert "forged" not in content
    records = json.loads(ask(serving, "/decisions")[1])
    assert [(r["id"], r["label"]) for r in records] == [("@1", "cat"), ("@1", "=b\r")]
    assert records[0]["candidates"] == "cat|dog|=b\r"
    assert records[0]["data"] == TABLE


def test_many_at_once(serving, folder):
    def post(i):
        ask(serving, "/decisions", decision(f"row {i}", "none", "", key=f"k{i}"))

    threads = [threading.Thread(target=post, args=(i,)) for i in range(1, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = parse((folder / "decisions.csv").read_bytes(), "it")
    assert sorted(r["id"] for r in found) == sorted(f"row {i}" for i in range(1, 12))


@pytest.mark.parametrize(
    "path",
    ["/../secret.png", "/%2e%2e/secret.png", "/link.png", "/run.json", "/..%2fsecret.png",
     "//etc/passwd", "/model/model.skops", "/decisions.csv", "/a%00.png", "/"+"x" * 5000 + ".png",
     "/cat.png", "/pics/a%20%231%25.png", "/.appellate-token",
     "/picture", "/picture?", "/picture?dog.png", "/picture?..%2Fsecret.png", "/picture?link.png",
     "/picture?..%2Frun%2Fcat.png", "/picture?.%2Fcat.png", "/picture?..%2Fnotes.txt",
     "/picture?..%2Fpics%2Fgone.png", "/picture?..%2Fpics%2Flink.png", "/picture?%00.png"],
)  # fmt: skip
def test_nothing_else_is_served(path, serving):
    answer, content = ask(serving, path)
    assert answer.status == 404
    assert b"secret" not in content


@pytest.mark.parametrize(
    ("query", "expected"), [("cat.png", b"png"), ("..%2Fpics%2Fa%20%231%25.png", b"beside")]
)
def test_pictures_that_the_page_names_are_served(query, expected, serving):
    answer, content = ask(serving, "/picture?" + query)
    assert (answer.status, content) == (200, expected)
    assert answer.headers["Content-Type"] == "image/png"


def test_a_page_written_anew(serving, folder):
    assert ask(serving, "/picture?dog.png")[0].status == 404
    write_docket(folder, ["dog.png"], table="sha256:01")
    assert ask(serving, "/picture?dog.png")[0].status == 200
    assert ask(serving, "/picture?cat.png")[0].status == 404
    answer, content = ask(serving, "/decisions", decision("1"))
    assert (answer.status, content) == (409, b"the docket was written anew: reload the page\n")
    assert not (folder / "decisions.csv").exists()
    (folder / "docket.html").unlink()
    assert ask(serving, "/")[0].status == 503
    (folder / "docket.html").write_text("<p>another page")
    assert ask(serving, "/")[0].status == 503


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ("null", 400),
        (b"\xff\xfe", 400),
        ("[" * 100_000, 400),
        (decision(kind="drop"), 400),
        (decision(name=1), 400),
        (decision(label="\ud800", kind="none"), 400),
        (decision(label="a\0", kind="none"), 400),
        (decision(label="x" * 1001, kind="none"), 422),
        (decision(name="nobody"), 422),
        (decision(name="\ud800"), 400),
        (decision(label="zebra"), 422),
        (decision(label="=b\r"), 422),
        (decision(label="cat", kind="none"), 422),
        (decision() | {"data": "sha256:other"}, 409),
        (decision(name="1" * 2_000_000), 413),
    ],
)
def test_what_is_refused(body, status, serving, folder, capsys):
    try:
        assert ask(serving, "/decisions", body)[0].status == status
    except (BrokenPipeError, ConnectionResetError):
        assert status == 413
    assert not (folder / "decisions.csv").exists()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /decisions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /decisions HTTP/1.1\r\n\r\n",
        b"POST /decisions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: [::1\r\nOrigin: http://[\r\n\r\n",
        b"GET /?token=%ff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nCookie: \xff=;;\r\nAuthorization: Bearer\r\n\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_malformed_requests_are_answered(request_, inside, serving, capsys):
    if inside:
        bearer = b"\r\nAuthorization: Bearer a%20secret%20of%20some%20length%3B\r\n"
        request_ = request_.replace(b"\r\n", bearer, 1)
    with socket.create_connection(serving.server_address[:2], timeout=10) as connection:
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    status = answer.partition(b"\r\n")[0].split()[1] if answer.startswith(b"HTTP") else b"400"
    assert status[:1] == b"4" or status == b"501" or (inside and status in (b"200", b"303"))
    assert capsys.readouterr().err == ""


def test_a_token_guards_everything(serving, folder):
    nobody = {"Authorization": ""}
    for path in ("/", "/?token=wrong", "/picture?cat.png", "/decisions"):
        assert ask(serving, path, **nobody)[0].status == 403
    assert ask(serving, "/decisions", decision(), **nobody)[0].status == 403
    answer, _ = ask(serving, "/" + serving.address().split("/", 3)[3], **nobody)
    assert answer.status == 303
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    nobody["Cookie"] = cookie.split(";")[0]
    assert ask(serving, "/", **nobody)[0].status == 200
    assert ask(serving, "/picture?cat.png", **nobody)[0].status == 200
    answer, _ = ask(serving, "/decisions", decision(), **nobody)
    assert answer.status == 403, "a cookie reads, only the page's own header decides"
    assert not (folder / "decisions.csv").exists()


def test_a_server_started_again_has_the_same_token(folder):
    tokens = []
    for _ in range(2):
        with DocketServer(folder) as server:
            tokens.append(server.token)
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) >= 32
    assert (folder / ".appellate-token").stat().st_mode & 0o077 == 0


def test_a_full_disk_is_said(serving, folder, monkeypatch):
    def full(handle, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("appellate.review.decisions.os.write", full)
    answer, content = ask(serving, "/decisions", decision(key="k"))
    assert (answer.status, content) == (500, b"No space left on device\n")
    monkeypatch.undo()
    assert ask(serving, "/decisions", decision(key="k"))[0].status == 200
    assert len(parse((folder / "decisions.csv").read_bytes(), "it")) == 1


def test_a_file_that_cannot_be_read_is_said(serving, folder):
    (folder / "decisions.csv").write_text("mine\n")
    answer, content = ask(serving, "/decisions", decision())
    assert answer.status == 500
    assert b"'decisions.csv' is no file of decisions" in content
    assert (folder / "decisions.csv").read_text() == "mine\n"


def test_two_folders_have_names_of_their_own(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "docket.html").write_bytes((folder / "docket.html").read_bytes())
    pages = []
    for home in (folder, other):
        with DocketServer(home, token=TOKEN) as server:
            pages.append(server.docket().page)
    assert pages[0] != pages[1]
