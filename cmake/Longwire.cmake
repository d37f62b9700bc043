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
include_directories(${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)

set(LONGWIRE_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
if(LONGWIRE_SANITIZE)
  # CUDA's enumerations are open: newer drivers and callers' mistakes bring values without a name.
  add_compile_options(-fsanitize=${LONGWIRE_SANITIZE} -fno-sanitize=enum -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LONGWIRE_SANITIZE})
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

# longwire_test(NAME SOURCES a.cc … LIBS x …): one GoogleTest program, run by ctest as NAME.
function(longwire_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
  if(LONGWIRE_SANITIZE MATCHES address)
    # Not for leaks: a worker's memory goes with its process, and the shim's tables are never
    # destroyed because libraries call it from exit handlers.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  elseif(LONGWIRE_SANITIZE MATCHES thread)
    # The sanitizer occupies the place where device memory usually lies.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "LONGWIRE_SOFTGPU_ARENA_BASE=0x7e8000000000;LONGWIRE_SOFTGPU_ARENA_BYTES=0x1000000000")
  else()
    set_tests_properties(${name} PROPERTIES ENVIRONMENT ${LONGWIRE_OVERWRITE_FREED})
  endif()
endfunction()
find_package(GTest REQUIRED)
