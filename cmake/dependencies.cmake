# Third-party libraries of the torch-free half (docs/dependencies.md); all from apt packages in tools/packages.txt.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(JPEG REQUIRED)

pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
add_library(chiliad_xxhash INTERFACE)
target_link_libraries(chiliad_xxhash INTERFACE PkgConfig::XXHASH)

add_library(chiliad_jpeg INTERFACE)
target_link_libraries(chiliad_jpeg INTERFACE JPEG::JPEG)

find_library(CHILIAD_SPNG_LIBRARY spng REQUIRED)
find_path(CHILIAD_SPNG_INCLUDE spng.h REQUIRED)
add_library(chiliad_spng INTERFACE)
target_link_libraries(chiliad_spng INTERFACE "${CHILIAD_SPNG_LIBRARY}")
target_include_directories(chiliad_spng SYSTEM INTERFACE "${CHILIAD_SPNG_INCLUDE}")

pkg_check_modules(HIGHWAY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(LCMS REQUIRED IMPORTED_TARGET lcms2)
find_package(ZLIB REQUIRED)
add_library(chiliad_lcms INTERFACE)
target_link_libraries(chiliad_lcms INTERFACE PkgConfig::LCMS ZLIB::ZLIB)
add_library(chiliad_highway INTERFACE)
target_link_libraries(chiliad_highway INTERFACE PkgConfig::HIGHWAY)
add_library(chiliad_webp INTERFACE)
target_link_libraries(chiliad_webp INTERFACE PkgConfig::WEBP)

add_library(chiliad_json INTERFACE)
target_link_libraries(chiliad_json INTERFACE nlohmann_json::nlohmann_json)

pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
add_library(chiliad_unicode INTERFACE)
target_link_libraries(chiliad_unicode INTERFACE PkgConfig::PCRE2 PkgConfig::ICU)

pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
add_library(chiliad_hwloc INTERFACE)
target_link_libraries(chiliad_hwloc INTERFACE PkgConfig::HWLOC)

pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
add_library(chiliad_curl INTERFACE)
target_link_libraries(chiliad_curl INTERFACE PkgConfig::CURL)
