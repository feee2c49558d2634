# chiliad_precompile(NAME [library...]): the target chiliad_NAME, whose precompiled cmake/NAME.h others reuse. It is named in angle
# brackets, without this checkout's path, so that the compiler cache serves it, and what is compiled with it, to every checkout.
function(chiliad_precompile name)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${name}.cpp" CONTENT "// anchor of a shared precompiled header\n")
  add_library(chiliad_${name} OBJECT "${CMAKE_BINARY_DIR}/${name}.cpp")
  target_link_libraries(chiliad_${name} PRIVATE chiliad_strict fmt::fmt ${ARGN})
  target_precompile_headers(chiliad_${name} PRIVATE "<cmake/${name}.h>")
endfunction()

# chiliad_reuse_precompiled(TARGET NAME): programs too are compiled as position-independent code then, as the header is.
function(chiliad_reuse_precompiled target name)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM chiliad_${name})
endfunction()
