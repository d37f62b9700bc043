# The private tables' sources, compiled into the shim's core (client-shim/CMakeLists.txt includes
# this file).
set(LONGWIRE_TABLE_SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/compile_cache.cc
    ${CMAKE_CURRENT_LIST_DIR}/compiler_tables.cc
    ${CMAKE_CURRENT_LIST_DIR}/context_storage.cc
    ${CMAKE_CURRENT_LIST_DIR}/export_tables.cc
    ${CMAKE_CURRENT_LIST_DIR}/integrity.cc
    ${CMAKE_CURRENT_LIST_DIR}/md2.cc
    ${CMAKE_CURRENT_LIST_DIR}/runtime_tables.cc
    ${CMAKE_CURRENT_LIST_DIR}/tools_tables.cc)

longwire_test(tables_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tables_test.cc
          ${CMAKE_CURRENT_LIST_DIR}/context_storage.cc
          ${CMAKE_CURRENT_LIST_DIR}/integrity.cc
          ${CMAKE_CURRENT_LIST_DIR}/md2.cc
  LIBS longwire_base)
target_include_directories(tables_test SYSTEM PRIVATE ${LONGWIRE_CUDA_INCLUDE})

longwire_test(compile_cache_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/compile_cache_test.cc
          ${CMAKE_CURRENT_LIST_DIR}/compile_cache.cc
  LIBS longwire_wire)
