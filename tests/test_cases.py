"""What Turnstone's own tests hold, by the numbers under which we list them: where each is held here.

Cases 77 to 100 are in `tests/services/test_beside_turnstone.py`, which counts them itself. Where we differ, the test named says what holds
here instead, and docs/turnstone.md says why.
"""

import importlib
from collections.abc import Callable

import pytest

CASES = {
    # The tool
    101: "tool.test_calling.test_a_save_tells_created_updated_and_unchanged_apart_with_id_and_version",
    102: "tool.test_calling.test_get_and_delete_without_a_scope_mean_the_default_one_and_say_where_else_it_is",
    103: "tool.test_arguments.test_an_unknown_action_is_told_which_there_are",
    104: "tool.test_arguments.test_key_and_value_are_other_words_for_name_and_content",
    105: "tool.test_calling.test_a_refused_save_leaves_what_is_stored",
    106: "tool.test_calling.test_only_a_coordinator_reaches_the_coordinator_scope",
    107: "tool.test_calling.test_a_coordinator_reaches_nothing_else",
    108: "tool.test_calling.test_coordinators_of_one_user_share_their_rows_and_nobody_else_sees_them",
    109: "services.test_sessions.test_what_cannot_be_a_session_is_refused",
    110: "tool.test_calling.test_content_at_the_limit_is_taken_and_the_limit_is_the_settings",
    111: "tool.test_calling.test_search_is_ranked_and_shows_beginnings",
    # Nudges
    112: "core.test_signs.test_a_correction_is_seen",
    113: "core.test_signs.test_what_only_looks_like_one_is_no_correction",
    114: "core.test_signs.test_contentment_is_seen",
    115: "core.test_signs.test_who_wants_more_is_not_content_yet",
    116: "core.test_nudge.test_the_cool_down_lies_between_any_two_that_speak_of_the_memory",
    117: "core.test_nudge.test_at_the_first_message_only_start_and_resume",
    118: "core.test_nudge.test_start_is_for_the_first_message_alone",
    119: "core.test_nudge.test_start_resume_and_tool_error_need_memories",
    120: "core.test_happened.test_the_third_identical_call_in_a_row_is_a_circle",
    121: "core.test_nudge.test_an_unknown_kind_is_never_nudged",
    122: "core.test_nudge.test_off_is_off",
    # The queue of what waits to be nudged
    123: "core.test_nudge_queue.test_what_came_first_is_taken_first",
    124: "core.test_nudge_queue.test_what_waits_for_another_seam_stays_in_its_place",
    125: "core.test_nudge_queue.test_each_channel_is_taken_at_its_seams",
    126: "services.test_nudges.test_what_cannot_be_an_event_is_refused",
    127: "core.test_nudge_queue.test_what_is_stale_is_dropped",
    128: "core.test_nudge_queue.test_a_test_of_validity_may_look_at_the_queue_itself",
    129: "core.test_nudge_queue.test_put_back_it_stands_where_it_stood",
    130: "core.test_nudge_queue.test_of_a_kind_that_is_full_the_oldest_go",
    131: "services.test_nudges.test_reports_and_turns_at_once_lose_nothing",
}


def test_no_case_is_left_out() -> None:
    """Those of the tool, of nudges and of the queue."""
    assert list(range(101, 132)) == list(CASES)


@pytest.mark.parametrize("number", CASES)
def test_the_test_of_each_case_is_there(number: int) -> None:
    """And is one that is run."""
    module, _, name = CASES[number].rpartition(".")
    test: Callable[..., None] = getattr(importlib.import_module(f"tests.{module}"), name)

    assert callable(test)
    assert name.startswith("test_")
