"""Servers behind https, with a certificate that this machine does not know."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import omnigraph as og
from omnigraph.errors import InputError, ServerUnreachable
from tests.server.serving import LIB, library, serving


def make_certificate(folder, address):
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, secret


def relay(source, target):
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def terminating_tls(address, certificate, key):
    """An https address in front of a server."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server((host, 0))
    threads = []

    def serve(plain):
        with (
            contextlib.suppress(OSError),
            plain,
            context.wrap_socket(plain, server_side=True) as outer,
            socket.create_connection((host, int(port))) as inner,
        ):
            back = threading.Thread(target=relay, args=(inner, outer))
            back.start()
            relay(outer, inner)
            back.join()

    def accept():
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                thread = threading.Thread(target=serve, args=(plain,))
                threads.append(thread)
                thread.start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"https://{host}:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """An https address, and the certificate behind it."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(folder, "127.0.0.1")
    with (
        serving(folder, library(folder), "--unauthenticated") as server,
        terminating_tls(server.address, certificate, key) as address,
    ):
        yield address, certificate


def test_a_certificate_that_is_not_known_is_refused(secured, monkeypatch):
    address, _ = secured
    monkeypatch.delenv("OMNIGRAPH_CA_FILE", raising=False)
    with pytest.raises(ServerUnreachable) as caught:
        og.connect(address)
    assert "OMNIGRAPH_CA_FILE" in str(caught.value)


def test_a_certificate_that_is_named_is_trusted(secured, monkeypatch):
    address, certificate = secured
    monkeypatch.setenv("OMNIGRAPH_CA_FILE", str(certificate))
    with og.connect(address) as graph:
        assert graph.uri == address
        assert len(graph.query(LIB, name="all_authors")) == 3
        assert graph.branches.create("tls").query(LIB, name="all_authors")
        graph.branches.delete("tls")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named(secured, monkeypatch, tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("OMNIGRAPH_CA_FILE", str(file))
    with pytest.raises(InputError, match=r"OMNIGRAPH_CA_FILE names .*ca\.pem"):
        og.connect(secured[0])


def test_the_command_uses_the_same_certificates(secured, monkeypatch, tmp_path, capsys):
    from omnigraph.cli.main import main

    address, certificate = secured
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    arguments = ["branch", "list", "--uri", address]
    monkeypatch.delenv("OMNIGRAPH_CA_FILE", raising=False)
    assert main(arguments) == 1
    assert "OMNIGRAPH_CA_FILE" in capsys.readouterr().err
    monkeypatch.setenv("OMNIGRAPH_CA_FILE", str(certificate))
    assert main(arguments) == 0
    assert "main" in capsys.readouterr().out
