"""Clusters: one tool or one task each, whatever words users had for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.clusters import clusters, overlap, topic_of
from tests.skills.evolution.experiences import corrected, view


def topics(*rows) -> list[str]:
    return [cluster.topic for cluster in clusters(rows)]


def test_lessons_about_one_tool_are_one_cluster_the_heaviest_topic_first():
    light, one, two = view(topic="tool:a", importance=0.9), view(topic="tool:b"), view(topic="tool:b")
    first, second = clusters([light, one, two])

    assert (first.topic, first.experiences) == ("tool:b", (one, two))
    assert (second.topic, second.experiences) == ("tool:a", (light,))


def test_within_a_cluster_the_weightiest_come_first():
    light, heavy = view(importance=0.2), view(importance=0.9)
    assert clusters([light, heavy])[0].experiences == (heavy, light)


def test_tools_with_like_names_stay_apart():
    assert topics(
        view(topic="tool:update_reservation_flights"), view(topic="tool:update_reservation_bags")
    ) == [
        "tool:update_reservation_bags",
        "tool:update_reservation_flights",
    ]


def test_two_users_words_for_one_task():
    one = corrected("Not the flight!", topic="task:refund-insurance-purchased-flight")
    two = corrected("Only that.", topic="task:insurance-refunded", request="I want the insurance refunded")
    three = corrected("No.", topic="task:change-passenger-name")

    assert [len(cluster.experiences) for cluster in clusters([one, two, three])] == [2, 1]
    assert topics(one, two) == ["task:refund-insurance-purchased-flight"]
    assert topics(one, two, view(**(vars(two) | {"id": "sexp-z"}))) == ["task:insurance-refunded"]


def test_without_a_topic_the_title_is_the_task():
    assert topic_of(view(topic="", title="Ship the parcel late")) == "task:late parcel ship"
    assert topic_of(view(topic="deploy")) == "task:deploy"


def test_overlap_needs_two_words_and_half_of_the_shorter():
    assert overlap(frozenset("abc"), frozenset("abxyz"))
    assert not overlap(frozenset("a"), frozenset("a"))
    assert not overlap(frozenset("abcde"), frozenset("abxyz"))


rows = st.builds(
    view,
    id=st.uuids().map(str),
    topic=st.sampled_from(
        ["tool:a", "task:refund-the-order", "task:refunds-of-orders", "", "task:", "x:y:z"]
    ),
    title=st.text(max_size=20),
    importance=st.floats(0, 1),
)


@given(st.lists(rows, max_size=8, unique_by=lambda row: row.id), st.randoms())
def test_every_experience_is_in_one_cluster_whatever_their_order(experiences, random):
    found = clusters(experiences)
    members = [row.id for cluster in found for row in cluster.experiences]
    assert sorted(members) == sorted(row.id for row in experiences)
    shuffled = list(experiences)
    random.shuffle(shuffled)
    assert clusters(shuffled) == found
