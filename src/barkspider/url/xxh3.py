"""xxh3_64 with a seed as a compiled function: the keys that `KeyMaker` makes, of texts that are no Python objects.

After the specification of the algorithm (xxHash, "XXH3 Algorithm Overview"), whose names are used here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import intrinsic

from barkspider.core.texts import BYTES, SMALL, nb

_PRIME32_1, _PRIME32_2, _PRIME32_3 = map(np.uint64, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D))
_PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME64_5 = map(
    np.uint64,
    (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)
_PRIME_MX1, _PRIME_MX2 = np.uint64(0x165667919E3779F9), np.uint64(0x9FB21C651E98DF25)
_LOW = np.uint64(0xFFFFFFFF)
_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
        "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    ),
    np.uint8,
)
_STRIPES = 16  # of a block: as many as the secret has windows of 64 bytes, 8 apart
_FIRST = np.array(
    [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
)


@intrinsic
def _read64(typing, text, place):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Eight bytes as a number, the lowest first, from wherever they lie."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = context.get_value_type(nb.uint64).as_pointer()
        return builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), word), align=1)

    return nb.uint64(text, nb.int64), generate


@intrinsic
def _fold(typing, left, right):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Both halves of the product of two numbers, one XOR the other."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ARG001
        word = arguments[0].type
        wide = type(word)(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.xor(product, builder.lshr(product, wide(64))), word)

    return nb.uint64(nb.uint64, nb.uint64), generate


read64: Any = _read64  # compiled into whoever calls it
fold: Any = _fold


@nb.njit(nb.uint64(nb.uint64), **SMALL)
def _avalanche(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> np.uint64(37))) * _PRIME_MX1
    return x ^ (x >> np.uint64(32))


@nb.njit(nb.uint64(nb.uint64), **SMALL)
def _avalanche_xxh64(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> np.uint64(33))) * _PRIME64_2
    x = (x ^ (x >> np.uint64(29))) * _PRIME64_3
    return x ^ (x >> np.uint64(32))


@nb.njit(nb.uint64(nb.uint64, nb.int64), **SMALL)
def _swap(x, count):  # type: ignore[no-untyped-def]
    """The lowest `count` bytes the other way round."""
    swapped = np.uint64(0)
    for _ in range(count):
        swapped = (swapped << np.uint64(8)) | (x & np.uint64(255))
        x >>= np.uint64(8)
    return swapped


@nb.njit(nb.uint64(BYTES, nb.int64, nb.int64, nb.uint64), **SMALL)
def _short(text, start, count, seed):  # type: ignore[no-untyped-def]
    """Of at most 16 bytes."""
    n = np.uint64(count)
    if count > 8:
        low = read64(text, start) ^ ((read64(_SECRET, 24) ^ read64(_SECRET, 32)) + seed)
        high = read64(text, start + count - 8) ^ ((read64(_SECRET, 40) ^ read64(_SECRET, 48)) - seed)
        return _avalanche(n + _swap(low, 8) + high + fold(low, high))
    if count >= 4:
        first = last = np.uint64(0)
        for k in range(4):
            first |= np.uint64(text[start + k]) << np.uint64(8 * k)
            last |= np.uint64(text[start + count - 4 + k]) << np.uint64(8 * k)
        seed ^= _swap(seed, 4) << np.uint64(32)
        x = (last + (first << np.uint64(32))) ^ ((read64(_SECRET, 8) ^ read64(_SECRET, 16)) - seed)
        x ^= ((x << np.uint64(49)) | (x >> np.uint64(15))) ^ ((x << np.uint64(24)) | (x >> np.uint64(40)))
        x *= _PRIME_MX2
        x ^= (x >> np.uint64(35)) + n
        x *= _PRIME_MX2
        return x ^ (x >> np.uint64(28))
    if count:
        first, middle = np.uint64(text[start]), np.uint64(text[start + (count >> 1)])
        x = (first << np.uint64(16)) | (middle << np.uint64(24)) | (n << np.uint64(8))
        x |= np.uint64(text[start + count - 1])
        secret = read64(_SECRET, 0)
        return _avalanche_xxh64(x ^ (((secret ^ (secret >> np.uint64(32))) & _LOW) + seed))
    return _avalanche_xxh64(seed ^ read64(_SECRET, 56) ^ read64(_SECRET, 64))


@nb.njit(nb.uint64(BYTES, nb.int64, nb.int64, nb.uint64), **SMALL)
def _mix(text, start, place, seed):  # type: ignore[no-untyped-def]
    """16 bytes of the text with 16 of the secret."""
    low = read64(text, start) ^ (read64(_SECRET, place) + seed)
    return fold(low, read64(text, start + 8) ^ (read64(_SECRET, place + 8) - seed))


@nb.njit(nb.void(BYTES, nb.int64, nb.uint8[::1], nb.int64, nb.uint64[::1]), **SMALL)
def _accumulate(text, start, secret, place, sums):  # type: ignore[no-untyped-def]
    """Take in a stripe of 64 bytes."""
    for lane in range(8):
        value = read64(text, start + 8 * lane)
        keyed = value ^ read64(secret, place + 8 * lane)
        sums[lane ^ 1] += value
        sums[lane] += (keyed & _LOW) * (keyed >> np.uint64(32))


@nb.njit(nb.uint64(BYTES, nb.int64, nb.int64, nb.uint64), nogil=True, cache=True)
def _long(text, start, count, seed):  # type: ignore[no-untyped-def]
    """Of more than 240 bytes."""
    words = np.empty(24, np.uint64)
    for k in range(24):
        words[k] = read64(_SECRET, 8 * k) + (np.uint64(0) - seed if k & 1 else seed)
    secret = words.view(np.uint8)
    sums = _FIRST.copy()
    stripes = (count - 1) // 64
    for stripe in range(stripes):
        _accumulate(text, start + 64 * stripe, secret, 8 * (stripe % _STRIPES), sums)
        if stripe % _STRIPES == _STRIPES - 1:
            for lane in range(8):
                sums[lane] ^= sums[lane] >> np.uint64(47)
                sums[lane] = (sums[lane] ^ words[16 + lane]) * _PRIME32_1
    _accumulate(text, start + count - 64, secret, 121, sums)
    x = np.uint64(count) * _PRIME64_1
    for k in range(4):
        place = 11 + 16 * k
        x += fold(sums[2 * k] ^ read64(secret, place), sums[2 * k + 1] ^ read64(secret, place + 8))
    return _avalanche(x)


@nb.njit(nb.uint64(BYTES, nb.int64, nb.int64, nb.uint64), **SMALL)
def xxh3(text, start, count, seed):  # type: ignore[no-untyped-def]
    """The key of `count` bytes from `start` on."""
    if count <= 16:
        return _short(text, start, count, seed)
    if count > 240:
        return _long(text, start, count, seed)
    x = np.uint64(count) * _PRIME64_1
    end = start + count
    if count <= 128:
        # From both ends towards the middle.
        for k in range((count - 1) >> 5, -1, -1):
            x += _mix(text, start + 16 * k, 32 * k, seed) + _mix(text, end - 16 * (k + 1), 32 * k + 16, seed)
        return _avalanche(x)
    for k in range(8):
        x += _mix(text, start + 16 * k, 16 * k, seed)
    x = _avalanche(x)
    for k in range(8, count >> 4):
        x += _mix(text, start + 16 * k, 16 * (k - 8) + 3, seed)
    return _avalanche(x + _mix(text, end - 16, 119, seed))
