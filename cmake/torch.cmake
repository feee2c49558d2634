# chiliad_torch: libtorch of the PyPI wheel without find_package(Torch), which demands a CUDA toolkit with CUDA wheels.
# Links libtorch_cpu and libc10 only. ProcessGroupGloo is inside libtorch_cpu; libgloo-dev gives only its headers.
if(NOT CHILIAD_TORCH)
  set(CHILIAD_TORCH "${CMAKE_SOURCE_DIR}/.deps/torch")
endif()
if(NOT EXISTS "${CHILIAD_TORCH}/include/ATen/core/Tensor.h")
  message(FATAL_ERROR "No libtorch in ${CHILIAD_TORCH}. Run ./dev setup, or set CHILIAD_TORCH to a libtorch folder "
                      "(the one with include/ and lib/), or configure the no-torch preset.")
endif()

add_library(chiliad_torch INTERFACE)
target_include_directories(chiliad_torch SYSTEM INTERFACE
  "${CHILIAD_TORCH}/include" "${CHILIAD_TORCH}/include/torch/csrc/api/include")
target_compile_definitions(chiliad_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1)
target_link_libraries(chiliad_torch INTERFACE "${CHILIAD_TORCH}/lib/libtorch_cpu.so" "${CHILIAD_TORCH}/lib/libc10.so")
file(GLOB chiliad_cuda_runtime "${CHILIAD_TORCH}/../nvidia/cu*/lib")
target_link_options(chiliad_torch INTERFACE
  "-Wl,-rpath,${CHILIAD_TORCH}/lib" "-Wl,--allow-shlib-undefined")
foreach(folder IN LISTS chiliad_cuda_runtime)
  target_link_options(chiliad_torch INTERFACE "-Wl,-rpath-link,${folder}")
endforeach()

# torch ships a newer fmt in its include folder, which shadows the system's. Its library is not in the wheel: it is made here from
# the headers, where they are of the version that cmake/torch_fmt.cpp knows; of others it is used header-only, which compiles slower.
file(STRINGS "${CHILIAD_TORCH}/include/fmt/base.h" fmt_version REGEX "define FMT_VERSION +[0-9]+")
string(REGEX REPLACE ".* " "" fmt_version "${fmt_version}")
if(fmt_version GREATER_EQUAL 120000 AND fmt_version LESS 130000)
  add_library(chiliad_torch_fmt STATIC "${CMAKE_CURRENT_SOURCE_DIR}/cmake/torch_fmt.cpp")
  target_compile_features(chiliad_torch_fmt PRIVATE cxx_std_20)
  target_compile_options(chiliad_torch_fmt PRIVATE -O2)
  target_include_directories(chiliad_torch_fmt SYSTEM PRIVATE "${CHILIAD_TORCH}/include")
  target_link_libraries(chiliad_torch INTERFACE chiliad_torch_fmt)
else()
  target_compile_definitions(chiliad_torch INTERFACE FMT_HEADER_ONLY)
endif()

chiliad_precompile(torch_pch chiliad_torch)
