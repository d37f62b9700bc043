# protoc-gen-longwire itself. Another build's may be used: sanitizers and fuzzers have no need of
# one that they watch, and it is long to compile.
set(LONGWIRE_GENERATOR "" CACHE FILEPATH
    "A protoc-gen-longwire that is built already; empty: build it")
if(LONGWIRE_GENERATOR)
  add_executable(protoc-gen-longwire IMPORTED GLOBAL)
  set_target_properties(protoc-gen-longwire PROPERTIES IMPORTED_LOCATION ${LONGWIRE_GENERATOR})
  return()
endif()

set(plugin_gen ${CMAKE_CURRENT_BINARY_DIR}/plugin)
file(MAKE_DIRECTORY ${plugin_gen})

# The plugin reads its own options through protobuf's C++ code for them.
add_custom_command(
  OUTPUT ${plugin_gen}/annotations.pb.cc ${plugin_gen}/annotations.pb.h
  COMMAND ${LONGWIRE_PROTOC} -I${proto} --cpp_out=${plugin_gen} annotations.proto
  DEPENDS ${proto}/annotations.proto VERBATIM)
add_library(longwire_annotations STATIC ${plugin_gen}/annotations.pb.cc)
target_compile_options(longwire_annotations PUBLIC -O1)  # for the generator, too
target_include_directories(longwire_annotations PUBLIC ${plugin_gen})
target_link_libraries(longwire_annotations PUBLIC protobuf::libprotobuf)

add_library(longwire_codegen STATIC
  model.cc options.cc load.cc rules.cc text.cc emitters.cc emit_call_ids.cc emit_structs.cc
  emit_entries.cc emit_hand_written.cc emit_forward.cc emit_proc_table.cc emit_driver_table.cc
  emit_dispatch.cc emit_visitor.cc emit_printer.cc emit_fake_driver.cc emit_every_call.cc
  emit_support.cc)
target_link_libraries(longwire_codegen PUBLIC longwire_annotations)

add_executable(protoc-gen-longwire main.cc)
target_link_libraries(protoc-gen-longwire PRIVATE longwire_codegen protobuf::libprotoc)
