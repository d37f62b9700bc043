# Settings and helper functions shared by every folder.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Binaries and libraries lie where an installation would put them, so that a build tree can be used
# as it is: dist/bin and dist/lib/longwire.
set(LONGWIRE_DIST ${CMAKE_BINARY_DIR}/dist)
set(LONGWIRE_BIN ${LONGWIRE_DIST}/bin)
set(LONGWIRE_LIB ${LONGWIRE_DIST}/lib/longwire)

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The compiler cache knows what a precompiled header stands for only with the first. The second:
  # below 512 MiB the compiler does not collect garbage, which takes it a sixth of its time.
  add_compile_options(-fpch-preprocess --param=ggc-min-heapsize=524288)
endif()
include_directories(${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)

option(LONGWIRE_GUARD_SWITCHES "Guards can be switched off, for tests (wire/guards.h)" OFF)
set(guard_switches 0)
if(LONGWIRE_GUARD_SWITCHES)
  set(guard_switches 1)
endif()
# In a header, not on the command line: only what asks for guards is compiled for it.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/longwire/guard_switches.h @ONLY CONTENT
"#pragma once
#ifndef LONGWIRE_GUARD_SWITCHES
#define LONGWIRE_GUARD_SWITCHES @guard_switches@
#endif
")

set(LONGWIRE_SANITIZE "" CACHE STRING
    "Clang's sanitizers to build with: address,undefined or thread")
if(LONGWIRE_SANITIZE)
  # CUDA's enumerations are open: newer drivers and callers' mistakes bring values without a name.
  # The other three are long to compile. Null pointers that are used and reads beyond an object the
  # address sanitizer sees, too; objects of another class than their pointer says nobody does.
  add_compile_options(-fsanitize=${LONGWIRE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LONGWIRE_SANITIZE})
  if(LONGWIRE_SANITIZE MATCHES undefined)
    # Functions that are looked up are called by the type that the caller knows.
    add_compile_options(-fno-sanitize=enum,null,object-size,vptr,function)
  endif()
  # The definitions are those that GCC makes by itself.
  if(LONGWIRE_SANITIZE MATCHES thread)
    add_compile_definitions(__SANITIZE_THREAD__=1)
  else()
    add_compile_definitions(__SANITIZE_ADDRESS__=1)
    add_compile_options(-fsanitize=fuzzer-no-link)  # coverage, by which tests/fuzz finds its way
  endif()
endif()

# For shared libraries. What a sanitizer wants is in the program that loads them.
if(NOT LONGWIRE_SANITIZE)
  set(LONGWIRE_NO_UNDEFINED -Wl,--no-undefined)
endif()

find_package(Threads REQUIRED)
find_package(CUDAToolkit QUIET)
find_path(LONGWIRE_CUDA_INCLUDE cuda.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include REQUIRED)
find_library(LONGWIRE_CUDA_STUB cuda PATH_SUFFIXES stubs
             HINTS ${CUDAToolkit_LIBRARY_DIR} /usr/local/cuda/lib64 NO_DEFAULT_PATH REQUIRED)
find_program(LONGWIRE_NVCC nvcc HINTS /usr/local/cuda/bin)

# The C library overwrites memory that is freed: its use afterwards, also in gRPC, which no
# sanitizer sees, fails at once. For tests and all processes that they start.
set(LONGWIRE_OVERWRITE_FREED MALLOC_PERTURB_=165)

# What most files of the larger libraries include, to be precompiled. Every file includes what it
# uses all the same: clang-tidy compiles it without.
set(LONGWIRE_COMMON_HEADERS
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <functional>
    <map> <memory> <mutex> <optional> <set> <span> <string> <thread> <unordered_map> <utility>
    <vector>)

# longwire_common_headers(TARGET…): those of longwire_wire serve these libraries, too.
function(longwire_common_headers)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM longwire_wire)
  endforeach()
endfunction()

option(LONGWIRE_BATCHES "Compile the sources of large folders together: quicker as a whole" OFF)

if(LONGWIRE_BATCHES)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_custom_target(each_source ALL
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/each_source.py ${CMAKE_BINARY_DIR}
    VERBATIM)
endif()

# longwire_batches(TARGET… [ALONE a.cc…]): several of its sources become one for the compiler, where
# the preset has it so. Not those that use a name of their own as another one uses it, too, or that
# undo macros.
function(longwire_batches)
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  if(LONGWIRE_BATCHES)
    set_target_properties(${ARG_UNPARSED_ARGUMENTS} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# longwire_reuse_headers(TARGET FROM): the precompiled header of FROM serves TARGET, too. For
# programs and what only programs link: such are compiled with the compiler's own default, which is
# position independent enough for an executable.
function(longwire_reuse_headers target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()

# longwire_room(NAME SOURCES a.cc … [OBJECTS o …] [LIBS x …]): the static library NAME of a folder.
# Beside it NAME_order is linked from the same objects and LIBS alone, and never used: what the
# folder takes from elsewhere, against the order of folders, is undefined there.
function(longwire_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;OBJECTS;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES} ${ARG_OBJECTS})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  if(NOT LONGWIRE_SANITIZE)
    add_library(${name}_order SHARED $<TARGET_OBJECTS:${name}> ${ARG_OBJECTS})
    target_link_libraries(${name}_order PRIVATE ${ARG_LIBS})
    target_link_options(${name}_order PRIVATE -Wl,--no-undefined)
    set_target_properties(${name}_order PROPERTIES LINKER_LANGUAGE CXX
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/order)
  endif()
endfunction()

# Sanitizers watch what a test tests; its own code need not be quick, but is long to compile.
if(LONGWIRE_SANITIZE)
  set(LONGWIRE_TEST_OPTIONS -O0)
endif()
find_package(GTest REQUIRED)
add_library(longwire_test_headers OBJECT EXCLUDE_FROM_ALL cmake/test_headers.cc)
target_link_libraries(longwire_test_headers PRIVATE GTest::gmock)
target_compile_options(longwire_test_headers PRIVATE ${LONGWIRE_TEST_OPTIONS})
target_precompile_headers(longwire_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
set_target_properties(longwire_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)

# The tests of one folder each. `./dev test` builds and runs them under the sanitizers, which see
# more, and leaves them out of the everyday build; `./dev build` has them there, too.
add_custom_target(unit_tests)

# longwire_test_library(NAME SOURCES a.cc … LIBS x …): what several tests share, compiled once.
function(longwire_test_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS} GTest::gmock)
  target_compile_options(${name} PRIVATE ${LONGWIRE_TEST_OPTIONS})
  longwire_reuse_headers(${name} longwire_test_headers)
endfunction()

find_program(LONGWIRE_ADDR2LINE addr2line REQUIRED)  # lines for the sanitizers' reports
if(LONGWIRE_SANITIZE MATCHES address)
  # Not for leaks: a worker's memory goes with its process, and the shim's tables are never
  # destroyed because libraries call it from exit handlers.
  set(LONGWIRE_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=0:external_symbolizer_path=${LONGWIRE_ADDR2LINE}")
elseif(LONGWIRE_SANITIZE MATCHES thread)
  # The sanitizer occupies the place where device memory usually lies.
  set(LONGWIRE_TEST_ENVIRONMENT
    "LONGWIRE_SOFTGPU_ARENA_BASE=0x7e8000000000;LONGWIRE_SOFTGPU_ARENA_BYTES=0x1000000000"
    "TSAN_OPTIONS=external_symbolizer_path=${LONGWIRE_ADDR2LINE}")
else()
  set(LONGWIRE_TEST_ENVIRONMENT ${LONGWIRE_OVERWRITE_FREED})
endif()

# longwire_unit_test(NAME TARGET…): the test NAME is one of them, and needs the targets.
function(longwire_unit_test name)
  set_property(TEST ${name} APPEND PROPERTY LABELS unit)
  foreach(target IN LISTS ARGN)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    add_dependencies(unit_tests ${target})
  endforeach()
endfunction()

# longwire_test(NAME SOURCES a.cc … LIBS x … [HEADERS target] [BUSY] [EVERYDAY] [ONE_THREAD]): one
# GoogleTest program, run by ctest as NAME, with the precompiled headers of all tests or those of
# the target.
# BUSY: most of the time passes in its own code, which is compiled as everything else. EVERYDAY: it
# belongs to the everyday build, since no sanitizer's has the folder: gRPC's packaged libraries know
# none. ONE_THREAD: the sanitizer of threads has nothing to see.
function(longwire_test name)
  cmake_parse_arguments(ARG "BUSY;EVERYDAY;ONE_THREAD" "HEADERS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  if(NOT ARG_HEADERS AND NOT ARG_BUSY)
    set(ARG_HEADERS longwire_test_headers)
  endif()
  if(ARG_HEADERS)
    target_compile_options(${name} PRIVATE ${LONGWIRE_TEST_OPTIONS})
    longwire_reuse_headers(${name} ${ARG_HEADERS})
  endif()
  if(ARG_ONE_THREAD AND LONGWIRE_SANITIZE MATCHES thread)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_EVERYDAY)
    longwire_unit_test(${name} ${name})
  endif()
  # For what hangs; a slow machine under a sanitizer is far from it.
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${LONGWIRE_TEST_ENVIRONMENT}")
endfunction()
