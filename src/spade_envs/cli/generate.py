"""``spade generate``: documents in, validated and registered environments out."""

from __future__ import annotations
