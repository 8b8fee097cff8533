"""Ask the server of this container whether it is alive; exit code 1 if it does not say so."""

import os
import sys
from http.client import HTTPConnection, HTTPException

host, _, port = os.environ["OMNIGRAPH_BIND"].rpartition(":")
if host in ("0.0.0.0", "[::]"):
    host = "localhost"
try:
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=4)
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
except (OSError, HTTPException) as error:
    sys.exit(f"no answer on {host}:{port}: {error}")
if status != 200:
    sys.exit(f"/healthz answered {status}")
