"""A server that speaks S3, on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer


@contextmanager
def s3() -> Iterator[str]:
    """The URL of a bucket of a server of its own, which s3fs finds by the environment."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        with patch.dict(os.environ, variables):
            urlopen(Request(f"http://{host}:{port}/bucket", method="PUT")).close()
            yield "s3://bucket/crawl"
    finally:
        server.stop()
