"""HTTP calls against a server that answers with prepared bytes, right and wrong ones."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from omnigraph.client.transport import PART_BYTES, Transport, Write
from omnigraph.errors import (
    AnswerLost,
    CommitStateUnknown,
    InputError,
    NotFoundError,
    PolicyError,
    RemoteError,
    ServerUnreachable,
    TooManyRequests,
    Unauthenticated,
    UnexpectedAnswer,
)

TOKEN = "s3cret-token"
KEYED = Write("key-1")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Peer:
    """A server that gives each connection its prepared answers and keeps what it was sent."""

    def __init__(self, connections: list[list[bytes | None]]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections = connections
        self._client: socket.socket | None = None
        self.requests: list[bytes] = []
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._connections:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self._client = client
                client.settimeout(10)
                with suppress(OSError):
                    for answer in answers:
                        if not self._read(client) or answer is None:
                            break
                        client.sendall(answer)

    def _read(self, client: socket.socket) -> bool:
        """One request, whose body has a length or ends with an empty chunk."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = client.recv(65536)
            if not part:
                return False
            data += part
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        lengths = {name.lower(): value for name, value in lines.items()}
        if b"transfer-encoding" in lengths:
            while not rest.endswith(b"0\r\n\r\n"):
                rest += client.recv(65536)
        else:
            while len(rest) < int(lengths.get(b"content-length", 0)):
                rest += client.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + rest)
        return True

    def refuse(self) -> None:
        """Accept no further connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        """Accept nothing more, and close the connection that is open."""
        self.refuse()
        with suppress(OSError):
            if self._client is not None:
                self._client.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)


@contextmanager
def peer(*connections: list[bytes | None]) -> Iterator[Peer]:
    """Each list has the answers of one connection; after them, or at a None, it is closed."""
    running = Peer(list(connections))
    try:
        yield running
    finally:
        running.close()


def answer(status: str, body: bytes = b"{}", *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status.encode(), length, *headers, b"", body])


# -- requests -------------------------------------------------------------------------------


def test_a_call_sends_its_path_parameters_body_and_token():
    with peer([OK]) as server:
        transport = Transport(server.address + "/base/", TOKEN, graph="a/b")
        reply = transport.call("POST", "/query", query=[("branch", "a b&c")], body={"query": "q"})
    sent = server.requests[0]
    assert sent.startswith(b"POST /base/graphs/a%2Fb/query?branch=a+b%26c HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer s3cret-token\r\n" in sent
    assert b"Omnigraph-Http-Api" not in sent
    assert sent.endswith(b'\r\n\r\n{"query":"q"}')
    assert reply.json(dict) == {}


def test_a_thread_keeps_its_connection():
    with peer([OK, OK, OK]) as server:
        transport = Transport(server.address)
        for _ in range(3):
            transport.call("GET", "/healthz", on_server=True)
        assert len(server.requests) == 3


def test_an_iterable_body_is_sent_in_chunks():
    with peer([OK]) as server:
        Transport(server.address).call(
            "POST", "/load", content=iter([b"ab", b"cde"]), content_type="application/x-ndjson"
        )
    assert server.requests[0].endswith(b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")


def test_contract_13_is_asked_for_and_required():
    stamp = b"Omnigraph-Http-Api: 0.13"
    with peer([answer("200 OK", b"{}", stamp), OK]) as server:
        transport = Transport(server.address, contract="0.13")
        assert transport.call("GET", "/schema").status == 200
        with pytest.raises(UnexpectedAnswer, match=r"contract none instead of 0\.13"):
            transport.call("GET", "/schema")
    assert b"\r\nOmnigraph-Http-Api: 0.13\r\n" in server.requests[0]


@pytest.mark.parametrize(
    "stamps", [[b"Omnigraph-Http-Api: 0.14"], [b"Omnigraph-Http-Api: 0.13"] * 2]
)
def test_a_write_with_a_wrong_stamp_has_an_unknown_outcome(stamps):
    with peer([answer("200 OK", b"{}", *stamps)]) as server:
        transport = Transport(server.address, contract="0.13")
        with pytest.raises(CommitStateUnknown) as caught:
            transport.call("POST", "/mutate", body={}, write=KEYED)
    assert caught.value.idempotency_key == "key-1"


# -- repeats --------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [None, KEYED], ids=["read", "write with a key"])
def test_a_request_is_repeated_once_when_a_kept_connection_was_closed(write):
    with peer([OK, None], [OK]) as server:
        transport = Transport(server.address)
        transport.call("GET", "/schema")
        transport.call("POST", "/mutate", body={}, write=write)
        assert len(server.requests) == 3


def test_a_write_without_a_key_is_never_repeated():
    with peer([OK, None], [OK]) as server:
        transport = Transport(server.address)
        transport.call("GET", "/schema")
        with pytest.raises(AnswerLost, match="may have been made"):
            transport.call("POST", "/branches", body={}, write=Write())
        assert len(server.requests) == 2


@pytest.mark.parametrize("write", [None, KEYED], ids=["read", "write with a key"])
def test_nothing_is_repeated_on_a_new_connection(write):
    with peer([None], [OK]) as server:
        expected = ServerUnreachable if write is None else CommitStateUnknown
        with pytest.raises(expected):
            Transport(server.address).call("POST", "/mutate", body={}, write=write)
        assert len(server.requests) == 1


def test_a_repeat_that_cannot_connect_leaves_the_outcome_unknown():
    running = Peer([[OK, None]])
    transport = Transport(running.address)
    transport.call("GET", "/schema")
    running.refuse()
    with pytest.raises(CommitStateUnknown, match="idempotency_key='key-1'"):
        transport.call("POST", "/mutate", body={}, write=KEYED)
    running.close()


def test_a_connection_closed_while_idle_is_replaced_without_sending_on_it():
    with peer([OK], [OK]) as server:
        transport = Transport(server.address)
        transport.call("GET", "/schema")
        kept = transport._local.kept.connection.sock
        kept.settimeout(10)
        assert kept.recv(1, socket.MSG_PEEK) == b""
        transport.call("POST", "/branches", body={}, write=Write())
        assert len(server.requests) == 2


# -- broken answers -------------------------------------------------------------------------

BROKEN = {
    "short body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
    "short chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}",
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "garbage": b"\x00\x01\x02 nothing like HTTP\r\n\r\n",
    "bad status": b"HTTP/1.1 abc OK\r\n\r\n",
    "huge header": b"HTTP/1.1 200 OK\r\nX-Large: " + b"x" * 100_000 + b"\r\n\r\n{}",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n{}",
    "nothing": b"",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_answer_to_a_read_is_a_remote_error(case):
    with peer([BROKEN[case]]) as server, pytest.raises(RemoteError) as caught:
        Transport(server.address, TOKEN).call("GET", "/schema")
    assert isinstance(caught.value, UnexpectedAnswer | ServerUnreachable)
    assert caught.value.server == server.address


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_answer_to_a_write_leaves_the_outcome_unknown(case):
    with peer([BROKEN[case]]) as server, pytest.raises(CommitStateUnknown) as caught:
        Transport(server.address).call(
            "POST", "/load", body={}, write=Write("load-7", is_load=True)
        )
    assert (caught.value.idempotency_key, caught.value.commit_id) == ("load-7", None)
    assert "load_id='load-7'" in str(caught.value)


@pytest.mark.parametrize("case", ["short body", "short chunk", "no last chunk"])
def test_a_stream_that_ends_early_is_an_error(case):
    with peer([BROKEN[case]]) as server:
        transport = Transport(server.address)
        with (
            transport.stream("GET", "/export") as incoming,
            pytest.raises(UnexpectedAnswer, match="ended early"),
        ):
            list(incoming)


def test_a_document_of_another_shape_is_an_unexpected_answer():
    with peer([answer("200 OK", b"[1, 2]")]) as server:
        reply = Transport(server.address).call("GET", "/schema")
    with pytest.raises(UnexpectedAnswer, match="not the expected document"):
        reply.json(dict[str, str])


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed(status):
    with peer([answer(status, b"", b"Location: http://127.0.0.1:9/x")], [OK]) as server:
        with pytest.raises(UnexpectedAnswer, match="redirects to http://127"):
            Transport(server.address, TOKEN).call("POST", "/mutate", body={}, write=KEYED)
        assert len(server.requests) == 1


def test_an_answer_that_never_comes_times_out():
    listener = socket.create_server(("127.0.0.1", 0))
    transport = Transport(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.2)
    with pytest.raises(ServerUnreachable, match="no answer in time"):
        transport.call("GET", "/schema")
    listener.close()


def test_a_server_that_does_not_run_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ServerUnreachable, match="cannot connect"):
        Transport(f"http://127.0.0.1:{port}").call("POST", "/mutate", body={}, write=KEYED)


# -- error answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("400 Bad Request", InputError),
        ("401 Unauthorized", Unauthenticated),
        ("403 Forbidden", PolicyError),
        ("404 Not Found", NotFoundError),
        ("500 Internal", RemoteError),
        ("502 Bad Gateway", RemoteError),
    ],
)
@pytest.mark.parametrize(
    "body", [b'{"error": "no such thing"}', b"<html>no such thing</html>", b""]
)
def test_an_answer_without_an_exception_is_judged_by_its_status(status, expected, body):
    with peer([answer(status, body)]) as server, pytest.raises(expected) as caught:
        Transport(server.address).call("GET", "/schema")
    assert "no such thing" in str(caught.value) or status[:3] in str(caught.value)


def test_too_many_requests_says_when_to_retry():
    refused = answer("429 Too Many", b'{"error": "busy"}', b"Retry-After: 60")
    with peer([refused]) as server, pytest.raises(TooManyRequests, match="busy") as caught:
        Transport(server.address).call("POST", "/mutate", body={}, write=KEYED)
    assert caught.value.retry_after == 60


def test_a_refusal_before_the_whole_body_was_read_is_seen():
    refused = answer("413 Too Large", b'{"error": "too large"}', b"Connection: close")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1000)
            client.sendall(refused)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 20):
                pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    transport = Transport(f"http://127.0.0.1:{listener.getsockname()[1]}")
    with pytest.raises(InputError, match="too large"):
        transport.call("POST", "/load", content=b"x" * 4_000_000, write=KEYED)
    transport.close()
    thread.join(10)
    listener.close()


# -- streams --------------------------------------------------------------------------------


def test_a_stream_arrives_in_parts_and_its_connection_is_kept():
    part = b"%x\r\n%s\r\n" % (PART_BYTES, b"y" * PART_BYTES)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with peer([head + part * 3 + b"0\r\n\r\n", OK]) as server:
        transport = Transport(server.address)
        with transport.stream("GET", "/export") as incoming:
            sizes = [len(one) for one in incoming]
        transport.call("GET", "/schema")
    assert sum(sizes) == 3 * PART_BYTES
    assert max(sizes) <= PART_BYTES


def test_a_stream_that_is_left_early_gives_up_its_connection():
    part = b"%x\r\n%s\r\n" % (PART_BYTES, b"y" * PART_BYTES)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with peer([head + part + b"0\r\n\r\n"], [OK]) as server:
        transport = Transport(server.address)
        with transport.stream("GET", "/export") as incoming:
            incoming.read(10)
        transport.call("GET", "/schema")
        assert len(server.requests) == 2


def test_a_refused_stream_raises_before_its_first_part():
    with (
        peer([answer("404 Not Found", b'{"error": "gone"}')]) as server,
        pytest.raises(NotFoundError, match="gone"),
        Transport(server.address).stream("GET", "/export"),
    ):
        pytest.fail("there is nothing to read")


# -- the token ------------------------------------------------------------------------------


def holders(transport: Transport) -> Iterator[Callable[[], str]]:
    yield lambda: repr(transport)
    yield lambda: str(transport)
    yield lambda: repr(pickle.dumps(transport))
    yield lambda: transport.uri


def test_the_token_is_nowhere_but_in_its_header():
    transport = Transport("http://127.0.0.1:1", TOKEN)
    for show in holders(transport):
        assert TOKEN not in show()
    with pytest.raises(ServerUnreachable) as caught:
        transport.call("GET", "/schema")
    assert TOKEN not in str(caught.value)
    assert TOKEN not in repr(vars(caught.value))


def test_a_transport_that_travels_has_no_token():
    with peer([OK]) as server:
        sent = pickle.dumps(Transport(server.address, TOKEN, graph="team", contract="0.7"))
        again = pickle.loads(sent)
        assert (again.uri, again.contract) == (server.address + "/graphs/team", "0.7")
        again.call("GET", "/schema")
    assert b"Authorization" not in server.requests[0]


@pytest.mark.parametrize("token", ["", "two words", "line\r\nX: y", "schlüssel", 7])
def test_a_token_that_is_no_header_value_is_refused_without_showing_it(token):
    with pytest.raises(InputError, match="token must") as caught:
        Transport("http://127.0.0.1:1", token)
    assert str(token) == "" or str(token) not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8080",
        "ftp://host",
        "http://",
        "http://h?x=1",
        "http://h#f",
        "http://h:99999",
        None,
    ],
)
def test_a_wrong_address_is_refused(url):
    with pytest.raises(InputError, match="url must"):
        Transport(url)


def test_an_address_with_a_password_is_refused_without_showing_it():
    with pytest.raises(InputError, match="pass token") as caught:
        Transport("https://ada:hunter2@host")
    assert "hunter2" not in str(caught.value)


def test_a_key_that_is_no_header_value_is_refused():
    with pytest.raises(InputError, match="idempotency_key must"):
        Transport("http://127.0.0.1:1").call("POST", "/mutate", write=Write("a\r\nb: c"))


# -- cost -----------------------------------------------------------------------------------


def test_the_transport_imports_nothing_heavy():
    program = (
        "import sys, omnigraph.client.transport;"
        "print(*{'lance', 'pyarrow', 'pandas', 'httpx', 'numpy', 'ssl'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() in ([], ["ssl"])
