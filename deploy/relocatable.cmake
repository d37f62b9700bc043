# The client as one folder for every Linux on x86-64 with the GNU C library 2.34 or newer: its link
# and its command with all other libraries linked in, and the two driver libraries, which are so
# anyway. The same objects as those of the Debian packages, linked once more.
find_package(PkgConfig REQUIRED)
set(relocatable ${PROJECT_BINARY_DIR}/relocatable)

# Static archives of what pkg-config names; the C library's own stay shared.
function(longwire_static_libraries out)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l ${ARGN}
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  list(REMOVE_DUPLICATES flags)
  set(found "")
  foreach(flag ${flags})
    string(REGEX REPLACE "^-l" "" name ${flag})
    if(name MATCHES "^(c|m|dl|rt|pthread|atomic)$")
      continue()
    endif()
    find_library(static_${name} NAMES lib${name}.a REQUIRED)
    list(APPEND found ${static_${name}})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
# c-ares and re2 are gRPC's, whose file leaves them out.
longwire_static_libraries(third_party grpc++ protobuf openssl yaml-cpp libcares re2)
file(GLOB abseil ${CMAKE_LIBRARY_PATH} /usr/lib/x86_64-linux-gnu/libabsl_*.a)
find_library(static_upb NAMES libupb.a REQUIRED)
find_library(static_sorting NAMES libaddress_sorting.a REQUIRED)
find_library(static_curses NAMES libncursesw.a REQUIRED)
find_library(static_terminfo NAMES libtinfo.a REQUIRED)
list(APPEND third_party ${abseil} ${static_upb} ${static_sorting} ${LONGWIRE_LZ4} ${LONGWIRE_ZSTD}
  ${static_curses} ${static_terminfo})
list(REMOVE_DUPLICATES third_party)

function(longwire_relocatable target)
  add_executable(${target}-relocatable $<TARGET_OBJECTS:${target}> relocatable/older_libc.cc
    ${PROJECT_SOURCE_DIR}/client-shim/entry/unwind_lookup.cc)
  set_target_properties(${target}-relocatable PROPERTIES
    OUTPUT_NAME ${target} RUNTIME_OUTPUT_DIRECTORY ${relocatable}/bin)
  target_link_options(${target}-relocatable PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--gc-sections)
  foreach(library ${ARGN})
    target_link_libraries(${target}-relocatable PRIVATE $<TARGET_FILE:${library}>)
    add_dependencies(${target}-relocatable ${library})
  endforeach()
  target_link_libraries(${target}-relocatable PRIVATE
    -Wl,--start-group ${third_party} -Wl,--end-group dl pthread)
endfunction()
longwire_relocatable(longwire-link longwire_link longwire_transport longwire_certificates
  longwire_wire longwire_base)
longwire_relocatable(longwire longwire_usage longwire_pictures longwire_top
  longwire_command_line longwire_link longwire_transport longwire_certificates longwire_calls
  longwire_rules_of longwire_swap_transcripts longwire_swaps longwire_policy_transcripts
  longwire_policy longwire_probe softgpu_ptx longwire_fat_binary longwire_statistics
  longwire_protocol longwire_transcripts longwire_config longwire_rules longwire_scheduler
  longwire_wire longwire_base)

set(tarball ${relocatable}/longwire-client-${PROJECT_VERSION}-x86_64.tar.xz)
add_custom_command(OUTPUT ${tarball}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/relocatable/make_tarball.py
          --build ${PROJECT_BINARY_DIR} --source ${PROJECT_SOURCE_DIR} --out ${tarball}
  DEPENDS longwire-relocatable longwire-link-relocatable client_shim nvml_shim ${pages}/stamp
          relocatable/make_tarball.py
  COMMENT "relocatable client" VERBATIM)
add_custom_target(tarball ALL DEPENDS ${tarball})

# The server, with this host's libraries beside it.
set(server_tarball ${relocatable}/longwire-server-${PROJECT_VERSION}-x86_64.tar.xz)
add_custom_command(OUTPUT ${server_tarball}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/relocatable/make_server_tarball.py
          --build ${PROJECT_BINARY_DIR} --source ${PROJECT_SOURCE_DIR} --out ${server_tarball}
  DEPENDS longwire longwired longwire-warden longwire-starter longwire-walls longwire-keeper
          longwire-worker longwire-signer softgpu relocatable/make_server_tarball.py
  COMMENT "relocatable server" VERBATIM)
add_custom_target(server_tarball ALL DEPENDS ${server_tarball})
