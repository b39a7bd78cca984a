"""The served page: decisions on disk at once, nothing outside the folder, tokens."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import socket
import stat
import threading
import time

import numpy as np
import pytest

from appellate._files import WriteError
from appellate.review import decisions, page_data, write_page
from appellate.review.decisions import COLUMNS, as_line, parse
from appellate.review.page import PageError, as_json, read_page
from appellate.review.server import _MOST_CONNECTIONS, DocketServer
from tests.review.dockets import make_docket
from tests.test_files import SPECIAL, make_special

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
    return {"id": name, "decision": kind, "label": label, "data": TABLE} | more


def test_the_page_may_talk_to_its_server_and_no_other(serving, folder):
    answer, content = ask(serving, "/")
    assert answer.status == 200
    assert b"connect-src &#39;self&#39;" in content
    assert b'"endpoint":"decisions"' in content
    assert b"connect-src &#39;none&#39;" in (folder / "docket.html").read_bytes()
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_decisions_are_appended_once(serving, folder):
    assert json.loads(ask(serving, "/decisions")[1])["records"] == []
    for label, key in (("cat", "k1"), ("=b\r", "k2"), ("=b\r", "k2")):
        record = decision("@1", "other", label, time="forged", candidates="forged", key=key)
        assert ask(serving, "/decisions", record)[0].status == 200
    content = (folder / "decisions.csv").read_bytes().decode()
    assert content.count("\n") == 3
    assert "\n'@1,other,cat,2" in content
    assert "forged" not in content
    records = json.loads(ask(serving, "/decisions")[1])["records"]
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
    assert (answer.status, content) == (409, b"the page was written again: reload it\n")
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
    assert b"'decisions.csv' is not a file of decisions" in content
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


# -- folders of others, and strangers ----------------------------------------------------------


def restart(folder):
    with DocketServer(folder) as server:
        return server.token


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind != "folder"])
def test_a_token_that_is_not_a_file_is_made_again(folder, kind):
    path = folder / ".appellate-token"
    make_special(path, kind)
    token = restart(folder)
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.read_text() == token == restart(folder)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) == 32
    assert not [p.name for p in folder.glob(".appellate-token-*")]


@pytest.mark.parametrize(
    ("content", "mode", "owner"),
    [
        (b"x" * 32, 0o644, True),
        (b"x" * 32, 0o600, False),
        (b"short", 0o600, True),
        (b"x" * 2000, 0o600, True),
        (b"x" * 20 + b"\n" + b"y" * 20, 0o600, True),
        (b"\xff" * 32, 0o600, True),
    ],
)
def test_a_token_that_others_may_know_is_made_again(folder, content, mode, owner, monkeypatch):
    path = folder / ".appellate-token"
    path.write_bytes(content)
    path.chmod(mode)
    if not owner:
        monkeypatch.setattr("appellate.review.server.is_own", lambda found: False)
    token = restart(folder)
    assert token.encode() not in content
    assert path.read_text() == token


def test_a_folder_as_token_is_named(folder):
    (folder / ".appellate-token").mkdir()
    with pytest.raises(WriteError, match="decisions cannot be saved"):
        restart(folder)


def test_a_folder_that_cannot_be_written_is_named(folder, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("appellate.review.server._read_token", lambda folder: "")
    monkeypatch.setattr("appellate.review.server.os.open", refuse)
    with pytest.raises(WriteError, match=r"cannot be saved in .*Read-only file system. Copy the"):
        restart(folder)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("[::1]:{port}", 200),
        ("evil.example:{port}", 403),
        ("evil.example", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("127.0.0.1:{port}.evil.example", 403),
        ("", 403),
    ],
)
def test_requests_to_another_host_are_refused(serving, name, status):
    name = name.format(port=serving.server_address[1])
    assert ask(serving, "/", Host=name)[0].status == status
    if name:
        assert ask(serving, "/", Origin=f"http://{name}")[0].status == status
    posted = ask(serving, "/decisions", decision(key="k"), Host=name)[0]
    assert posted.status == status


@pytest.mark.parametrize(
    "origin", ["null", "https://127.0.0.1", "http://evil.example", "http://["]
)
def test_requests_of_another_site_are_refused(serving, folder, origin):
    assert ask(serving, "/decisions", decision(), Origin=origin)[0].status == 403
    assert not (folder / "decisions.csv").exists()


def test_on_all_addresses_the_one_that_was_reached_is_known(folder):
    with serving_from(folder, host="0.0.0.0") as server:
        port = server.server_address[1]
        assert ask(server, "/", Host=f"127.0.0.1:{port}")[0].status == 200
        assert ask(server, "/", Host=f"{socket.gethostname()}:{port}")[0].status == 200
        assert ask(server, "/", Host=f"192.0.2.1:{port}")[0].status == 403


def test_a_long_key_is_refused(serving, folder):
    assert ask(serving, "/decisions", decision(key="k" * 201))[0].status == 400
    assert not (folder / "decisions.csv").exists()
    assert ask(serving, "/decisions", decision(key="k" * 200))[0].status == 200


def put_data(folder, data):
    text = (folder / "docket.html").read_text()
    start = text.index(">", text.index('id="data"')) + 1
    end = text.index("</script>", start)
    (folder / "docket.html").write_text(text[:start] + as_json(data) + text[end:])


PACKED = {"shape": [1], "type": "u1", "bytes": "AA=="}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in ("starts", "labels", "ids", "table", "classes")),
        *((name, 7) for name in ("starts", "labels", "ids", "table", "classes", "images")),
        ("ids", ["x"]), ("ids", [1] * 12), ("classes", []), ("classes", [1, 2, 3]),
        ("images", [1]), ("images", ["a\0.png"]), ("starts", PACKED), ("labels", PACKED),
        ("starts", {**PACKED, "type": "O"}), ("starts", {**PACKED, "bytes": "%"}),
        ("starts", {**PACKED, "shape": [10**12]}),
    ],
)  # fmt: skip
def test_a_page_that_was_changed_is_named(folder, name, value):
    data = read_page(folder / "docket.html")
    data[name] = value
    if value is None:
        del data[name]
    put_data(folder, data)
    if name == "images" and isinstance(value, list) and value != [1]:
        with serving_from(folder) as server:
            assert ask(server, "/picture?a%00.png")[0].status == 404
        return
    with pytest.raises(PageError, match=r"docket.html' is damaged .*Write it again with rectify"):
        DocketServer(folder)


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_page_that_is_not_a_file_is_named(folder, kind):
    (folder / "docket.html").unlink()
    make_special(folder / "docket.html", kind)
    with pytest.raises(PageError, match=r"docket.html' is .*not opened"):
        DocketServer(folder)


def test_many_idle_connections_leave_room(serving):
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            idle = socket.create_connection(serving.server_address[:2], timeout=10)
            stack.enter_context(idle)
            idle.sendall(b"GET / HTTP/1.1\r\n")
        assert ask(serving, "/decisions")[0].status == 200
        assert threading.active_count() - before <= _MOST_CONNECTIONS


@pytest.mark.parametrize(
    "start", [b"GET / HT", b"POST /decisions HTTP/1.1\r\n{}Content-Length: 99\r\n\r\n"]
)
def test_a_request_has_to_arrive_in_time(serving, start, monkeypatch):
    monkeypatch.setattr("appellate.review.server._SECONDS", 0.3)
    host = f"Host: 127.0.0.1:{serving.server_address[1]}\r\n"
    bearer = "Authorization: Bearer a%20secret%20of%20some%20length%3B\r\n"
    start = start.replace(b"{}", (host + bearer).encode())
    began = time.monotonic()
    with socket.create_connection(serving.server_address[:2], timeout=10) as connection:
        connection.sendall(start)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 10:
                connection.sendall(b"x")
                time.sleep(0.05)
    assert time.monotonic() - began < 5
    assert ask(serving, "/")[0].status == 200


def test_a_decision_costs_the_same_with_many_before_it(serving, folder, monkeypatch):
    lines = "".join(as_line(decision(key=f"k{i}")) for i in range(20_000))
    (folder / "decisions.csv").write_text(",".join(COLUMNS) + "\n" + lines)
    assert ask(serving, "/decisions", decision(key="first"))[0].status == 200
    parsed = []
    monkeypatch.setattr(
        "appellate.review.decisions._as_record",
        lambda cells, head, real=decisions._as_record: parsed.append(1) or real(cells, head),
    )
    for i in range(20):
        assert ask(serving, "/decisions", decision(key=f"new {i}"))[0].status == 200
    assert len(parsed) == 20
    assert len(json.loads(ask(serving, "/decisions")[1])["records"]) == 20_021


def test_only_decisions_since_a_mark_are_sent(serving, folder):
    def get(mark=""):
        return json.loads(ask(serving, f"/decisions?since={mark}")[1])

    for i in range(3):
        ask(serving, "/decisions", decision(f"row {i + 1}", key=f"k{i}"))
    first = get()
    assert (first["whole"], len(first["records"])) == (True, 3)
    assert get(first["mark"]) == {"records": [], "whole": False, "mark": first["mark"]}
    ask(serving, "/decisions", decision("row 9", key="k9", note="blurred, see row 3"))
    later = get(first["mark"])
    assert [r["id"] for r in later["records"]] == ["row 9"]
    assert later["records"][0]["note"] == "blurred, see row 3"
    for strange in ("", "x", "1.5", first["mark"] + "0000", first["mark"].split(".")[0] + ".-1"):
        assert get(strange)["whole"], strange
    (folder / "decisions.csv").write_text("id,decision,label\nrow 2,accept,cat\n")
    replaced = get(later["mark"])
    assert (replaced["whole"], [r["id"] for r in replaced["records"]]) == (True, ["row 2"])
    (folder / "decisions.csv").unlink()
    assert get(replaced["mark"])["records"] == []


def test_several_decisions_in_one_request(serving, folder):
    bad = decision("row 2", label="no candidate", key="k2")
    records = [decision("row 1", key="k1"), bad, decision("nobody", key="k3"),
               decision("row 4", key="k4"), decision("row 4", key="k4")]  # fmt: skip
    answer, content = ask(serving, "/decisions", records)
    assert answer.status == 200
    saved, first, second, *rest = json.loads(content)
    assert (saved, rest) == ("", ["", ""])
    assert "is not a candidate of 'row 2'" in first
    assert "no row is called 'nobody'" in second
    found = parse((folder / "decisions.csv").read_bytes(), "it")
    assert [r["id"] for r in found] == ["row 1", "row 4"]
    for body, status in (([decision(), {}], 400), ([decision(), decision(data="x")], 409)):
        assert ask(serving, "/decisions", body)[0].status == status
    assert len(parse((folder / "decisions.csv").read_bytes(), "it")) == 2, "all or none"


def test_a_long_note_is_refused(serving, folder):
    answer, content = ask(serving, "/decisions", decision(note="x" * 2001))
    assert (answer.status, content) == (400, b"the note has more than 2000 characters\n")
    assert not (folder / "decisions.csv").exists()
