"""How to reach an S3-compatible store, read from the environment.

The adapter and Lance get the same options, so that they always talk to the same server.
Tests: tests/contract/objects/test_remote.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.settings import read_settings

_TRUTHY: Final = frozenset({"1", "true", "TRUE", "True", "yes", "YES", "on", "ON"})


_PASSED_ON: Final = (
    "aws_region",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
)


def s3_options(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """How to reach the store, from the `AWS_*` variables. Lance takes the same options."""
    settings = read_settings(environment)
    given = {option: getattr(settings, option) for option in _PASSED_ON}
    options: dict[str, str] = {option: text for option, text in given.items() if text is not None}
    endpoint = settings.aws_endpoint_url_s3 or settings.aws_endpoint_url
    if endpoint:
        options["aws_endpoint"] = endpoint.rstrip("/")
    if (endpoint or "").startswith("http://") or settings.aws_allow_http in _TRUTHY:
        options["allow_http"] = "true"
    if settings.aws_s3_force_path_style in _TRUTHY:
        options["aws_virtual_hosted_style_request"] = "false"
    return options
