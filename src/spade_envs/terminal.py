"""Text that others wrote, on a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return untrusted ``text`` with its control characters made visible, so that it cannot steer a terminal."""
    return "".join(ch if ch in "\n\t" or ch.isprintable() else f"\\x{ord(ch):02x}" for ch in text)
