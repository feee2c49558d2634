# chiliad::strict carries the language level and the warnings of our own targets; third-party headers are SYSTEM.
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
find_package(Threads REQUIRED)

set(CHILIAD_DEBUG_LEVEL 1 CACHE STRING "Debug information of builds that have it: 1 lines, 2 variables too")

add_library(chiliad_strict INTERFACE)
add_library(chiliad::strict ALIAS chiliad_strict)
target_compile_features(chiliad_strict INTERFACE cxx_std_20)
target_compile_options(chiliad_strict INTERFACE -Wall -Wextra -Werror -Wnon-virtual-dtor -Wshadow -Wvla -Wno-pedantic
                       -ffp-contract=off
                       # Code of tests (property CHILIAD_IS_TEST) compiles a fifth faster at -O1; of what it tests nothing changes.
                       $<$<CONFIG:Release,RelWithDebInfo>:$<IF:$<BOOL:$<TARGET_PROPERTY:CHILIAD_IS_TEST>>,-O1,-O2>>
                       # Lines and functions for stack traces; types of variables would be a third of the build's time.
                       $<$<CONFIG:Debug,RelWithDebInfo>:$<$<COMPILE_LANGUAGE:CXX>:-g${CHILIAD_DEBUG_LEVEL}>>)
# GCC 12 warns falsely of strings that are put together or moved (its bugs 105329 and 105651), behind precompiled headers the more.
target_compile_options(chiliad_strict INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:
  -Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)
# Clang drives the fuzzers alone; it warns of other things than the compiler whose warnings are errors.
target_compile_options(chiliad_strict INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-error>)
target_include_directories(chiliad_strict INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(chiliad_strict INTERFACE $<$<BOOL:${CHILIAD_FAULTS}>:CHILIAD_FAULTS=1>)
if(CHILIAD_SANITIZE)
  target_compile_options(chiliad_strict INTERFACE -fsanitize=${CHILIAD_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(chiliad_strict INTERFACE -fsanitize=${CHILIAD_SANITIZE})
endif()

find_program(CHILIAD_CCACHE ccache)
if(CHILIAD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_CURRENT_SOURCE_DIR}/tools/compile_cached")
endif()
find_program(CHILIAD_MOLD mold)
if(CHILIAD_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
