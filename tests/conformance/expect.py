"""Shared by the Python clients. It needs no package."""


def check(what, expected):
    if what != expected:
        raise AssertionError(f"expected {expected!r}, got {what!r}")
