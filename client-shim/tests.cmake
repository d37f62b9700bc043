# The unit tests of the client's library, beside the code that they test. They are one program, so
# that the library is linked once.
longwire_test(client_shim_test
  SOURCES copy/upload_choice_test.cc support/handle_table_test.cc
  LIBS client_shim_core)
