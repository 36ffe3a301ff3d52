"""Requests of Scrapy as text that no one can make code of: JSON, with a tag for what JSON does not have.

What a request has besides its URL is packed, and put behind the URL as its fragment. Values may be None, bool, int, float,
str, bytes, list, tuple, set, frozenset, dict with any of these as keys, date and datetime, and items of classes that derive
from `scrapy.Item`; anything else is refused with ValueError, as Scrapy's own disk queues refuse what they cannot write.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from scrapy import Item, Request, Spider
from scrapy.http import Headers
from scrapy.utils.misc import load_object

LONGEST = (
    1 << 18
)  # bytes of a request behind its URL; what is larger is refused: thousands of them wait in RAM
_PLAIN = (type(None), bool, int, float, str)
_TAG = "$"  # the one key of an object that stands for another type
_UNUSUAL: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("b", lambda value: value.decode("latin-1")),
    tuple: ("t", lambda value: [_tagged(each) for each in value]),
    set: ("s", lambda value: [_tagged(each) for each in value]),
    frozenset: ("f", lambda value: [_tagged(each) for each in value]),
    datetime: ("dt", lambda value: value.isoformat()),
    date: ("d", lambda value: value.isoformat()),
}
_BACK: dict[str, Callable[[Any], Any]] = {
    "b": lambda value: value.encode("latin-1"),
    "t": lambda value: tuple(map(_untagged, value)),
    "s": lambda value: set(map(_untagged, value)),
    "f": lambda value: frozenset(map(_untagged, value)),
    "dt": datetime.fromisoformat,
    "d": date.fromisoformat,
    "m": lambda value: {_untagged(key): _untagged(each) for key, each in value},
    "i": lambda value: _item(*value),
}
# What a request has if nobody said anything else; it is left out.
_USUAL: dict[str, Any] = {
    "method": "GET",
    "headers": {},
    "body": b"",
    "cookies": {},
    "encoding": "utf-8",
    "priority": 0,
    "dont_filter": False,
    "flags": [],
    "cb_kwargs": {},
    "meta": {},
    "callback": None,
    "errback": None,
}


def encode(request: Request, spider: Spider) -> str:
    """A request without its URL, as a fragment of one; "" when there is nothing to say.

    Raises ValueError for what cannot be kept: values of other types, callbacks that are no methods of the spider.
    """
    found: dict[str, Any] = {}
    for name in request.attributes:
        value = getattr(request, name)
        if name in ("callback", "errback") and callable(value):
            value = _method(spider, value)
        elif isinstance(value, Headers):
            value = dict(value)
        if name != "url" and (name not in _USUAL or value != _USUAL[name]):
            found[name] = _tagged(value)
    if type(request) is not Request:
        found["_class"] = _path(type(request))
    if not found:
        return ""
    text = json.dumps(found, separators=(",", ":"), allow_nan=True)
    packed = urlsafe_b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 1)).decode()
    if len(packed) > LONGEST:
        raise ValueError(
            f"it has {len(packed):,} bytes besides its URL, packed, and may have {LONGEST:,}: keep large values elsewhere"
        )
    return packed


def decode(url: str, fragment: str, spider: Spider) -> Request:
    """The request that `encode` was given. Raises ValueError where the spider has changed, or the text is none of ours."""
    try:
        found: dict[str, Any] = {}
        if fragment:
            found = json.loads(_unpack(fragment))
        made = found.pop("_class", None)
        values = {name: _untagged(value) for name, value in found.items()}
        for name in ("callback", "errback"):
            if isinstance(values.get(name), str):
                values[name] = getattr(spider, values[name])
        kind = Request if made is None else _class(made, Request)
        return kind(url=url, **{name: values[name] for name in values if name in kind.attributes})
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        ImportError,
        zlib.error,
        RecursionError,
    ) as error:
        raise ValueError(f"cannot be read back: {error}") from error


def _unpack(fragment: str) -> str:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(urlsafe_b64decode(fragment), 64 * LONGEST)
    if unpacker.unconsumed_tail:
        raise ValueError("it is larger than any request")
    return data.decode("utf-8", "surrogatepass")


def _tagged(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_tagged(each) for each in value]
    if kind is dict:
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: _tagged(each) for key, each in value.items()}
        return {_TAG: ["m", [[_tagged(key), _tagged(each)] for key, each in value.items()]]}
    if kind in _UNUSUAL:
        tag, change = _UNUSUAL[kind]
        return {_TAG: [tag, change(value)]}
    if isinstance(value, Item):
        return {_TAG: ["i", [_path(kind), _tagged(dict(value))]]}
    raise ValueError(f"{value!r:.100} is of type {kind.__name__}, which is not kept on disk")


def _untagged(value: Any) -> Any:
    if type(value) is list:
        return [_untagged(each) for each in value]
    if type(value) is dict:
        if _TAG in value:
            tag, inside = value[_TAG]
            return _BACK[tag](inside)
        return {key: _untagged(each) for key, each in value.items()}
    return value


def _method(spider: Spider, function: Any) -> str:
    """The name of a method of the spider, under which it is found again."""
    name: str = getattr(function, "__name__", "")
    there = getattr(getattr(spider, name, None), "__func__", None)
    if there is None or getattr(function, "__func__", None) is not there:
        raise ValueError(f"{function!r:.100} is no method of the spider")
    return name


def _path(kind: type) -> str:
    if "<locals>" in kind.__qualname__:
        raise ValueError(f"{kind.__qualname__} is a class that no other process finds")
    return f"{kind.__module__}.{kind.__qualname__}"


def _class(path: str, base: type) -> Any:
    found = load_object(path)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{path} is no {base.__name__}")
    return found


def _item(path: str, fields: Any) -> Any:
    return _class(path, Item)(_untagged(fields))
