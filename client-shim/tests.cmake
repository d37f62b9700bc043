# The unit tests of the client's library, beside the code that they test. They are one program, so
# that the library is linked once; the parts that need a session share a fake one.
longwire_test(client_shim_test
  SOURCES testing/fake_session.cc
          connect/check_reply_test.cc
          copy/remap_copies_test.cc copy/upload_choice_test.cc
          entry/kept_answers_test.cc
          graph/exec_changes_test.cc
          memory/async_pool_test.cc memory/device_memory_test.cc memory/pool_kinds_test.cc
          mirror/held_pages_test.cc mirror/host_exposure_test.cc
          mirror/late_comparisons_test.cc mirror/mirrors_test.cc mirror/one_word_test.cc
          mirror/program_state_test.cc mirror/standstill_test.cc mirror/words_test.cc
          session/coverage_test.cc session/distrust_test.cc session/round_trips_test.cc
          session/upload_end_test.cc
          stream/capture_test.cc stream/waits_across_test.cc
          support/handle_table_test.cc
          tracing/server_clock_test.cc
  LIBS client_shim_core)

# Its thread compares the memory of every test that runs longer than a moment.
longwire_test(client_live_exchange_test
  SOURCES testing/fake_session.cc mirror/live_exchange_test.cc mirror/live_states_test.cc
  LIBS client_shim_core)
