"""The tokens of servers: the file `credentials` beside the operator config, and which token a request gets.

The file has a section `[server]` per server with a line `token = …`. It is private to its owner, written in
one step, and what it says about other servers is kept byte for byte. A token is never part of a message
or of a `repr`. Tests: tests/unit/config/test_credentials.py, tests/unit/config/test_tokens.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from omnigraph.config.operator import OperatorConfig, is_server_name
from omnigraph.config.reading import decoded, exclusive, read_config_bytes
from omnigraph.errors import CredentialsError, UsageError
from omnigraph.replace_file import replacing_bytes
from omnigraph.settings import TOKEN_PREFIX, read_secret

_HEADER: Final = re.compile(r"\s*\[([^\[\]]*)\]\s*(?:#.*)?")
_EMPTY: Final = re.compile(r"\s*(?:#.*)?")
_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(.*)")
_QUOTED: Final = re.compile(r"""(["'])\s*(\S*)\s*\1\s*(?:#.*)?""")
_PLAIN: Final = re.compile(r"""([^"'\s#]\S*)?\s*(?:#.*)?""")
# What can stand in a header: visible ASCII. A line break would add another header.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, and where it was found."""

    secret: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class _Sections:
    """The lines of a file; per server its token, and its lines from the header to the last value."""

    lines: tuple[bytes, ...] = field(default=(), repr=False)
    extents: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)

    def replaced(self, server: str, section: bytes) -> bytes:
        """The file with another section for a server, in its place if it has one."""
        first, last = self.extents.get(server, (len(self.lines), len(self.lines)))
        before = b"".join(self.lines[:first])
        if section and before and not before.endswith(b"\n"):
            before += b"\n"
        return before + section + b"".join(self.lines[last:])


def credentials_path(operator: OperatorConfig) -> Path:
    """The file of the tokens."""
    return operator.path.with_name("credentials")


def stored_token(path: Path, server: str) -> str | None:
    """The token of a server; a blank one counts as none. Raises `CredentialsError`."""
    return _read(path).tokens.get(server)


def store_token(path: Path, server: str, token: str) -> None:
    """Add or replace the token of a server. Raises `CredentialsError` or `UsageError`."""
    _require_name(server)
    require_token(token)
    quote = "'" if '"' in token else '"'
    section = f"[{server}]\ntoken = {quote}{token}{quote}\n".encode()
    with exclusive(path.parent, CredentialsError):
        _write(path, _read(path).replaced(server, section))


def remove_token(path: Path, server: str) -> bool:
    """Remove the section of a server; False if there is none. Raises `CredentialsError`."""
    _require_name(server)
    if not path.parent.is_dir():
        return False
    with exclusive(path.parent, CredentialsError):
        sections = _read(path)
        if server not in sections.extents:
            return False
        _write(path, sections.replaced(server, b""))
    return True


def require_token(token: str) -> None:
    """Raise `UsageError` unless a text can be sent as a token."""
    if not token:
        raise UsageError("the token is blank; pass it with --token or on standard input")
    if not _TOKEN.fullmatch(token):
        raise UsageError("the token contains blanks, control or non-ASCII characters")


def variable_of(server: str) -> str:
    """The environment variable that holds the token of a server."""
    return TOKEN_PREFIX + server.upper().replace("-", "_")


def find_server(url: str, servers: Mapping[str, str]) -> str | None:
    """The server that a URL belongs to: the one with the longest URL that it equals or continues."""
    url = url.rstrip("/")
    found = [name for name, base in servers.items() if url == base or url.startswith(base + "/")]
    return max(found, key=lambda name: len(servers[name]), default=None)


def find_token(
    url: str,
    operator: OperatorConfig,
    variable: str | None = None,
    dotenv: Mapping[str, str] | None = None,
) -> Token | None:
    """The token to send to a URL, or None. Raises `CredentialsError`.

    The first of: the environment variable of the operator's server at this URL, its section in
    `credentials`, the `variable` a project file names for the graph, `OMNIGRAPH_BEARER_TOKEN`. The last
    two are also looked up in `dotenv`.
    """
    server = find_server(url, operator.servers)
    if server is not None:
        name = variable_of(server)
        if secret := read_secret(name):
            _require_one_server(name, operator)
            return _found(secret, f"environment variable {name}")
        path = credentials_path(operator)
        if secret := stored_token(path, server):
            return _found(secret, f"[{server}] in {path}")
    for name in filter(None, (variable, "OMNIGRAPH_BEARER_TOKEN")):
        if secret := read_secret(name):
            return _found(secret, f"environment variable {name}")
        if secret := (dotenv or {}).get(name, "").strip():
            return _found(secret, f"{name} in auth.env_file")
    return None


def _found(secret: str, source: str) -> Token:
    if not _TOKEN.fullmatch(secret):
        raise UsageError(
            f"the token from {source} contains blanks, control or non-ASCII characters"
        )
    return Token(secret, source)


def _require_one_server(variable: str, operator: OperatorConfig) -> None:
    """Refuse a variable that two servers share: one of them would get the token of the other."""
    sharing = [name for name in operator.servers if variable_of(name) == variable]
    if len(sharing) > 1:
        names = " and ".join(f"'{name}'" for name in sharing)
        raise UsageError(
            f"{variable} is set, but belongs to the servers {names}; rename one of them"
        )


def _require_name(server: str) -> None:
    if not is_server_name(server):
        raise UsageError(
            f"'{server}' is not a valid server name; use letters, digits, '.', '_' and '-'"
        )


def _read(path: Path) -> _Sections:
    content = read_config_bytes(path, CredentialsError, is_private=True)
    return _Sections() if content is None else _parse(content, path)


def _parse(content: bytes, path: Path) -> _Sections:
    decoded(content, path, CredentialsError)
    lines = tuple(content.splitlines(keepends=True))
    extents: dict[str, tuple[int, int]] = {}
    tokens: dict[str, str] = {}
    current: str | None = None
    keys: set[str] = set()
    for number, raw in enumerate(lines, 1):
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        if header := _HEADER.fullmatch(line):
            current = header[1].strip()
            if current in extents:
                raise CredentialsError(str(path), f"section [{current}] stands twice", number)
            extents[current] = (number - 1, number)
            keys = set()
        elif assignment := _ASSIGNMENT.fullmatch(line):
            key, text = assignment.groups()
            if current is None:
                raise CredentialsError(str(path), "a value stands before the first section", number)
            if key in keys:
                raise CredentialsError(str(path), f"key '{key}' stands twice", number)
            keys.add(key)
            extents[current] = (extents[current][0], number)
            if key == "token" and (value := _value(text, path, number)):
                tokens[current] = value
        elif not _EMPTY.fullmatch(line):
            raise CredentialsError(
                str(path), "the line is not a section, `token = …` or a comment", number
            )
    return _Sections(lines, extents, tokens)


def _value(text: str, path: Path, line: int) -> str:
    if quoted := _QUOTED.fullmatch(text):
        return quoted[2].strip()
    if plain := _PLAIN.fullmatch(text):
        return plain[1] or ""
    raise CredentialsError(str(path), "the value has a blank or an unmatched quote", line)


def _write(path: Path, content: bytes) -> None:
    try:
        with replacing_bytes(str(path), new_mode=0o600) as file:
            file.write(content)
    except OSError as error:
        raise CredentialsError(str(path), (error.strerror or "unwritable").lower()) from None
