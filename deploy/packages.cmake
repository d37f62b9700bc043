# longwire-server, longwire-client, longwire-policy and longwire-common as Debian packages.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL server client policy common)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # /etc is not under the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX packages)
set(CPACK_PACKAGE_NAME longwire)
set(CPACK_PACKAGE_VENDOR Longwire)
# Whoever builds packages answers for them; Debian's tools read the same variables.
set(LONGWIRE_MAINTAINER "Longwire <longwire@localhost>")
if(DEFINED ENV{DEBEMAIL})
  set(LONGWIRE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_CONTACT ${LONGWIRE_MAINTAINER})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The programs of `longwire bench` want a libcuda.so.1: no package of Debian's is to bring one.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LONGWIRE_LIB})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

set(same_version "(= ${PROJECT_VERSION}-1)")
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/debian)

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME longwire-server)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "lends this host's CUDA devices to programs on other hosts
The daemon longwired and the processes that serve its sessions, with systemd
units. It needs NVIDIA's driver, or serves a slow software device for trying.")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "longwire-common ${same_version}, systemd, passwd")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS longwire-policy)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${debian}/server/postinst ${debian}/server/prerm ${debian}/server/postrm
  ${debian}/server/conffiles)

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME longwire-client)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "runs CUDA programs on a host without a GPU
A libcuda.so.1 that carries a program's driver calls to longwired on another
host, and the process that holds the connection. Programs are not changed:
longwire run --server HOST:PORT PROGRAM.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "longwire-common ${same_version}")
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA
  ${debian}/client/prerm ${debian}/client/postrm ${debian}/client/conffiles)

set(CPACK_DEBIAN_POLICY_PACKAGE_NAME longwire-policy)
set(CPACK_DEBIAN_POLICY_DESCRIPTION "runs an operator's own policies in longwired
Verifies and compiles eBPF that decides how sessions share devices, with DPDK's
librte_bpf. Only servers with policies need it; it has the header to write some.")
set(CPACK_DEBIAN_POLICY_PACKAGE_DEPENDS "longwire-common ${same_version}")

set(CPACK_DEBIAN_COMMON_PACKAGE_NAME longwire-common)
set(CPACK_DEBIAN_COMMON_DESCRIPTION "command of Longwire, for servers and clients
Runs programs, shows what a server does, finds out what is wrong. Both
longwire-server and longwire-client need it.")

# What each Debian package says of itself. SOURCE_DATE_EPOCH makes the date always the same.
string(TIMESTAMP LONGWIRE_BUILT "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${debian}/changelog.in ${PROJECT_BINARY_DIR}/debian/changelog.Debian @ONLY)
execute_process(COMMAND gzip --best --no-name --force changelog.Debian
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/debian COMMAND_ERROR_IS_FATAL ANY)
foreach(part server client policy common)
  install(FILES ${debian}/copyright ${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz
    DESTINATION share/doc/longwire-${part} COMPONENT ${part})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION share/doc/longwire-common COMPONENT common)

include(CPack)

# The target "packages": what is installed is built before, nothing else, and only if it is older.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON PARENT_SCOPE)
set(stamp ${PROJECT_BINARY_DIR}/packages/stamp)
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*)
add_custom_command(OUTPUT ${stamp}
  COMMAND ${CMAKE_COMMAND} -E rm -rf packages
  COMMAND ${CMAKE_CPACK_COMMAND} --config CPackConfig.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
  DEPENDS ${LONGWIRE_INSTALLED} ${LONGWIRE_PAGES} ${pages}/stamp ${files}
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "Debian packages" VERBATIM)
add_custom_target(packages DEPENDS ${stamp})
