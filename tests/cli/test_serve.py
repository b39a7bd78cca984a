"""The served page: decisions on disk at once, nothing outside the folder, tokens."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading

import pytest

from appellate.cli.app import run
from appellate.cli.server import make_server

NAMED = ["cat.png", "../pics/a #1%.png", "../notes.txt", "../pics/gone.png", "../pics/link.png"]
DATA = f'<script type="application/json" id="data">{json.dumps({"images": [*NAMED, ""]})}</script>'
PAGE = f"""{DATA}
<meta content="connect-src &#39;none&#39;; x"><meta name="appellate-key" content="k">
connect-src 'none'"""


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "run"
    home.mkdir()
    (home / "docket.html").write_text(PAGE)
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


@pytest.fixture
def serving(folder, request):
    token = getattr(request, "param", None)
    with make_server(folder, "127.0.0.1", 0, token) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path, body=None, **headers):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    method = "GET" if body is None else "POST"
    if body is not None:
        headers = {"Content-Type": "application/json"} | headers
        body = body if isinstance(body, str) else json.dumps(body)
    named = {k.replace("_", "-"): v for k, v in headers.items()}
    with contextlib.closing(connection):
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer, answer.read()


def test_the_page_may_talk_to_its_server(serving):
    answer, content = ask(serving, "/")
    assert answer.status == 200
    assert b"connect-src 'self'" in content
    assert b'name="appellate-server"' in content
    assert content.endswith(b"connect-src 'none'"), "text of the user stays as it is"
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_decisions_are_appended(serving, folder):
    assert json.loads(ask(serving, "/decisions")[1]) == []
    for label in ("a", "=b\n"):
        record = {"id": "@1", "decision": "other", "label": label, "time": "forged"}
        assert ask(serving, "/decisions", record)[0].status == 200
    lines = (folder / "decisions.csv").read_text()
    assert lines.startswith("id,decision,label,time\n'@1,other,a,2")
    assert "'=b" in lines
    assert "forged" not in lines
    records = json.loads(ask(serving, "/decisions")[1])
    assert [(r["id"], r["label"]) for r in records] == [("@1", "a"), ("@1", "=b\n")]


def test_many_at_once(serving, folder):
    def post(i):
        ask(serving, "/decisions", {"id": str(i), "decision": "none", "label": ""})

    threads = [threading.Thread(target=post, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (folder / "decisions.csv").read_text().splitlines()
    assert len(lines) == 21
    assert sorted(int(line.split(",")[0]) for line in lines[1:]) == list(range(20))


@pytest.mark.parametrize(
    "path",
    ["/../secret.png", "/%2e%2e/secret.png", "/link.png", "/run.json", "/..%2fsecret.png",
     "//etc/passwd", "/model/model.skops", "/decisions.csv", "/a%00.png", "/"+"x" * 5000 + ".png",
     "/cat.png", "/pics/a%20%231%25.png",
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


def test_a_page_written_anew_names_others(serving, folder):
    assert ask(serving, "/picture?dog.png")[0].status == 404
    (folder / "docket.html").write_text(PAGE.replace("cat.png", "dog.png") + "\n")
    assert ask(serving, "/picture?dog.png")[0].status == 200
    assert ask(serving, "/picture?cat.png")[0].status == 404


def test_a_page_without_pictures_names_none(serving, folder):
    null = PAGE.replace(json.dumps([*NAMED, ""]), "null")
    for page in ("no data", null, PAGE.replace("{", "[")):
        (folder / "docket.html").write_text(page)
        assert ask(serving, "/picture?cat.png")[0].status == 404


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("{", {}, 400),
        ("[]", {}, 400),
        ({"id": "1", "decision": "drop"}, {}, 400),
        ({"id": 1, "decision": "none"}, {}, 400),
        ({"id": "1", "decision": "none"}, {"Content_Type": "text/plain"}, 404),
        ({"id": "1", "decision": "none"}, {"Origin": "http://evil.example"}, 403),
        ({"id": "1", "decision": "none"}, {"Host": "evil.example"}, 403),
        ({"id": "1" * 2_000_000, "decision": "none"}, {}, 400),
    ],
)
def test_what_is_refused(body, headers, status, serving, folder):
    try:
        assert ask(serving, "/decisions", body, **headers)[0].status == status
    except (BrokenPipeError, ConnectionResetError):
        assert len(str(body)) > 1_000_000
    assert not (folder / "decisions.csv").exists()


@pytest.mark.parametrize("serving", ["a secret of some length;"], indirect=True)
def test_a_token_guards_everything(serving, folder):
    assert ask(serving, "/")[0].status == 403
    assert ask(serving, "/?token=wrong")[0].status == 403
    assert ask(serving, "/picture?cat.png")[0].status == 403
    assert ask(serving, "/decisions", {"id": "1", "decision": "none"})[0].status == 403
    answer, _ = ask(serving, serving.address().split("/", 3)[3].join(["/", ""]))
    assert answer.status == 303
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask(serving, "/", Cookie=cookie.split(";")[0])[0].status == 200
    assert not (folder / "decisions.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "give --token"),
        (["--token", "short"], "16 characters or more"),
        (["--host", "no.such.host.invalid", "--token", "x" * 16], "cannot listen"),
    ],
)
def test_mistakes(options, message, folder, capsys):
    assert run(["serve", str(folder), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_a_docket(tmp_path, capsys):
    assert run(["serve", str(tmp_path)]) == 2
    assert "has no docket.html" in capsys.readouterr().err
