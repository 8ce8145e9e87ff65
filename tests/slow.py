"""Tests that ``make test`` leaves to ``make test-all``: they start streaming queries or JVMs of their own, and take minutes.

A streaming query costs seconds whatever it computes; ``make test`` keeps one of most kinds, so that it stays short on two cores.
"""

SLOW = (
    "tests/docs/test_docs.py::test_an_example_runs_and_prints[count_windows",
    "tests/docs/test_docs.py::test_an_example_runs_and_prints[hourly_late",
    "tests/docs/test_docs.py::test_an_example_runs_and_prints[process_with_state",
    "tests/docs/test_docs.py::test_an_example_runs_and_prints[sessions_dynamic_gap",
    "tests/docs/test_docs.py::test_the_blocks_of_a_page_run_on_spark[sinks",
    "tests/spark/test_api.py::test_late_rows_within_the_allowed_lateness_refine[each",
    "tests/spark/test_api.py::test_state_and_side_outputs_of_a_process_function_live_over_batches",
    "tests/spark/test_chain.py::test_a_refinement_too_late_for_the_second_window_is_its_late_data",
    "tests/spark/test_chain.py::test_results_that_an_early_trigger_brings_are_not_late_downstream",
    "tests/spark/test_chain.py::test_three_windows_in_a_row",
    "tests/spark/test_chain.py::test_window_end_of_a_result_is_an_event_time",
    "tests/spark/test_conformance.py::test_a_query_restarted_after_every_step_gives_the_same",
    "tests/spark/test_errors.py::test_the_checkpoint_goes_on_after_the_cause_is_gone[a function that raises",
    "tests/spark/test_errors.py::test_the_checkpoint_goes_on_after_the_cause_is_gone[a merge behind",
    "tests/spark/test_errors.py::test_the_checkpoint_goes_on_after_the_cause_is_gone[wrong output schema",
    "tests/spark/test_processing_time.py::test_a_chain_ends_when_an_earlier_window_waits_for_the_clock",
    "tests/spark/test_processing_time.py::test_a_timeout_fires_what_a_count_waits_for",
    "tests/spark/test_processing_time.py::test_available_now_ends_by_itself_with_start",
    "tests/spark/test_processing_time.py::test_other_runs_are_left_alone",
    "tests/spark/test_processing_time.py::test_windows_fire_without_new_rows",
    "tests/spark/test_side_outputs.py::test_a_side_output_alone_as_a_dataframe",
    "tests/spark/test_side_outputs.py::test_files_have_a_folder_for_each_query_and_batch_with_rows",
    "tests/spark/test_side_outputs.py::test_one_query_keeps_the_state_once_and_writes_every_output",
    "tests/spark/test_sources.py::test_a_program_that_waits_for_the_clock_ends_by_itself",
    "tests/spark/test_sources.py::test_a_socket_with_the_default_trigger_and_windows_without_event_time",
    "tests/spark/test_sources.py::test_file_sinks_of_start_with_a_processing_time_trigger",
    "tests/spark/test_sources.py::test_parquet_and_console_sinks_by_spark_itself",
)
