"""How to reach an S3-compatible store, read from the environment.

The adapter and Lance get the same options, so that they always talk to the same server.
Tests: tests/contract/objects/test_remote.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

_TRUTHY: Final = frozenset({"1", "true", "TRUE", "True", "yes", "YES", "on", "ON"})


def s3_options(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """How to reach the store, from the `AWS_*` variables. Lance takes the same options."""
    options = {
        option: environment[variable]
        for variable, option in (
            ("AWS_REGION", "aws_region"),
            ("AWS_ACCESS_KEY_ID", "aws_access_key_id"),
            ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
            ("AWS_SESSION_TOKEN", "aws_session_token"),
        )
        if environment.get(variable)
    }
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        options["aws_endpoint"] = endpoint.rstrip("/")
    if (endpoint or "").startswith("http://") or environment.get("AWS_ALLOW_HTTP") in _TRUTHY:
        options["allow_http"] = "true"
    if environment.get("AWS_S3_FORCE_PATH_STYLE") in _TRUTHY:
        options["aws_virtual_hosted_style_request"] = "false"
    return options
