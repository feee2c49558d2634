# find_package(Chiliad) for extensions (docs/extending.md): from this build tree, and from where `cmake --install` puts it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What an extension sees of this Chiliad is its headers: their digest is part of the build id.
get_property(package_headers GLOBAL PROPERTY CHILIAD_HEADERS)
get_property(torch_headers GLOBAL PROPERTY CHILIAD_TORCH_HEADERS)
list(APPEND package_headers ${torch_headers})
list(FILTER package_headers EXCLUDE REGEX "/detail/")
list(SORT package_headers)
set(digest_header "${CMAKE_BINARY_DIR}/generated/chiliad_headers_digest.h")
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/package_headers.cmake" CONTENT "set(HEADERS \"${package_headers}\")\n" @ONLY)
add_custom_command(OUTPUT "${digest_header}"
  COMMAND "${CMAKE_COMMAND}" -DLIST=${CMAKE_BINARY_DIR}/package_headers.cmake -DOUT=${digest_header}
          -DROOT=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -P "${CMAKE_SOURCE_DIR}/cmake/headers_digest.cmake"
  DEPENDS ${package_headers} "${CMAKE_SOURCE_DIR}/cmake/headers_digest.cmake" "${CMAKE_BINARY_DIR}/package_headers.cmake"
  VERBATIM)
add_custom_target(chiliad_headers_digest DEPENDS "${digest_header}")
add_dependencies(chiliad_extension chiliad_headers_digest)
target_include_directories(chiliad_extension PUBLIC "${CMAKE_BINARY_DIR}/generated")
if(TARGET chiliad_check_torch_headers)
  add_dependencies(chiliad_check_torch_headers chiliad_headers_digest)
endif()

set(CHILIAD_EXTENSION_DEFINITIONS CHILIAD_BUILDS_EXTENSION USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1
  FMT_HEADER_ONLY)
if(CHILIAD_FAULTS)
  list(APPEND CHILIAD_EXTENSION_DEFINITIONS CHILIAD_FAULTS=1)
endif()

# The build tree.
set(CHILIAD_PACKAGE_INCLUDES "${CMAKE_SOURCE_DIR};${CMAKE_BINARY_DIR}/generated")
set(CHILIAD_PACKAGE_PROGRAMS "${CMAKE_BINARY_DIR}/bin")
configure_file("${CMAKE_SOURCE_DIR}/cmake/ChiliadConfig.cmake.in" "${CMAKE_BINARY_DIR}/ChiliadConfig.cmake" @ONLY)

# The installed tree may be moved; libtorch stays where it is.
set(CHILIAD_PACKAGE_INCLUDES "\${CMAKE_CURRENT_LIST_DIR}/../../../${CMAKE_INSTALL_INCLUDEDIR}")
set(CHILIAD_PACKAGE_PROGRAMS "\${CMAKE_CURRENT_LIST_DIR}/../../../${CMAKE_INSTALL_BINDIR}")
configure_file("${CMAKE_SOURCE_DIR}/cmake/ChiliadConfig.cmake.in" "${CMAKE_BINARY_DIR}/installed/ChiliadConfig.cmake" @ONLY)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/ChiliadConfigVersion.cmake" COMPATIBILITY ExactVersion)
foreach(header IN LISTS package_headers)
  file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}" "${header}")
  get_filename_component(folder "${name}" DIRECTORY)
  install(FILES "${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
install(FILES "${digest_header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(PROGRAMS $<TARGET_FILE:chiliad> $<TARGET_FILE:chiliad-worker> DESTINATION "${CMAKE_INSTALL_BINDIR}")  # as they are
install(FILES "${CMAKE_BINARY_DIR}/installed/ChiliadConfig.cmake" "${CMAKE_BINARY_DIR}/ChiliadConfigVersion.cmake"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Chiliad")
