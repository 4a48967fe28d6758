"""Ids: a prefix that speaks, time first, then chance."""

from __future__ import annotations

import re

from mirix.ids import id_factory, new_id


def test_an_id_is_a_prefix_and_22_hex_digits():
    assert re.fullmatch(r"proc-[0-9a-f]{22}", new_id("proc"))


def test_ids_sort_by_time_and_do_not_repeat(time_machine):
    time_machine.move_to(1_700_000_000.0, tick=False)
    first = id_factory("rev")()
    time_machine.shift(0.002)
    later = [new_id("rev") for _ in range(1000)]

    assert first.startswith("rev-018bcfe56800")
    assert min(later) > first
    assert len(set(later)) == 1000
