# chiliad_python_module(NAME DEPS module...): chiliad/NAME/*.cpp as the extension _native of the Python package beside it. The whole
# package lies in python/ of the build folder, for tests; `cmake --install --component python` puts it into a wheel.
# With SKBUILD (pip install .) Python and nanobind are those of the build; else nanobind is the one of `./dev setup`.
set(chiliad_nanobind "${CMAKE_SOURCE_DIR}/.deps/python/nanobind/cmake")
if(SKBUILD)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE chiliad_nanobind OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
else()
  set(Python_FIND_STRATEGY LOCATION)
  find_package(Python 3.11...3.11.999 REQUIRED COMPONENTS Interpreter Development.Module)
  if(NOT EXISTS "${chiliad_nanobind}/nanobind-config.cmake")
    message(FATAL_ERROR "No nanobind in .deps/python. Run ./dev setup, or configure with -DCHILIAD_PYTHON=OFF.")
  endif()
endif()
find_package(nanobind CONFIG REQUIRED PATHS "${chiliad_nanobind}" NO_DEFAULT_PATH)

function(chiliad_python_module name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(folder "${CMAKE_SOURCE_DIR}/chiliad/${name}")
  set(package "${CMAKE_BINARY_DIR}/python/chiliad")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  nanobind_add_module(chiliad_${name} NB_STATIC NOMINSIZE PROTECT_STACK NB_SUPPRESS_WARNINGS ${sources})
  target_link_libraries(chiliad_${name} PRIVATE chiliad_strict chiliad_base)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(chiliad_${name} PRIVATE chiliad_${dep})
  endforeach()
  target_compile_definitions(chiliad_${name} PRIVATE CHILIAD_VERSION="${PROJECT_VERSION}")
  # Other modules of the interpreter have libraries of the same names.
  target_link_options(chiliad_${name} PRIVATE "-Wl,--exclude-libs,ALL")
  set_target_properties(chiliad_${name} PROPERTIES OUTPUT_NAME _native LIBRARY_OUTPUT_DIRECTORY "${package}")
  nanobind_add_stub(chiliad_${name}_stub MODULE _native OUTPUT "${package}/_native.pyi" PYTHON_PATH "${package}"
    DEPENDS chiliad_${name})

  file(GLOB pure CONFIGURE_DEPENDS "${folder}/chiliad/*")
  list(FILTER pure EXCLUDE REGEX "__pycache__")
  file(MAKE_DIRECTORY "${package}")
  foreach(file IN LISTS pure)
    cmake_path(GET file FILENAME file_name)
    file(CREATE_LINK "${file}" "${package}/${file_name}" SYMBOLIC)
  endforeach()
  install(TARGETS chiliad_${name} LIBRARY DESTINATION chiliad COMPONENT python)
  install(FILES ${pure} "${package}/_native.pyi" DESTINATION chiliad COMPONENT python)
endfunction()
