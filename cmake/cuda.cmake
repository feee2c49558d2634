# The compiler of .cu files, and chiliad_cuda: headers of the CUDA toolkit and of NCCL, and the CUDA half of libtorch. Torch modules with device sources link it.
# A libtorch of the locked wheels links, but runs only where NVIDIA's libraries are, as beside a full `pip install torch`.
find_package(CUDAToolkit REQUIRED)
find_path(CHILIAD_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CHILIAD_TORCH}/../nvidia/nccl/include" REQUIRED)
if(NOT EXISTS "${CHILIAD_TORCH}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "The libtorch in ${CHILIAD_TORCH} is for CPUs alone: expected lib/libtorch_cuda.so. "
                      "Set CHILIAD_TORCH to one for CUDA, or configure the dev preset.")
endif()

add_library(chiliad_cuda INTERFACE)
target_include_directories(chiliad_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} "${CHILIAD_NCCL_INCLUDE}")
target_link_libraries(chiliad_cuda INTERFACE "${CHILIAD_TORCH}/lib/libtorch_cuda.so" "${CHILIAD_TORCH}/lib/libc10_cuda.so")
# The runtime that libtorch loads, not the toolkit's: there must be one.
file(GLOB chiliad_cudart "${CHILIAD_TORCH}/../nvidia/cu*/lib/libcudart.so.*")
if(chiliad_cudart)
  list(GET chiliad_cudart 0 chiliad_cudart)
  target_link_libraries(chiliad_cuda INTERFACE "${chiliad_cudart}")
else()
  target_link_libraries(chiliad_cuda INTERFACE CUDA::cudart)
endif()

# Code for A100 and H100; later GPUs compile the last one's when they load it.
set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "GPUs that .cu files are compiled for")
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # it is chiliad_cuda's

# chiliad_add_kernels(TARGET source.cu...): a library of .cu files. They see neither libtorch nor the flags of its targets, so that
# they compile fast.
function(chiliad_add_kernels target)
  add_library(${target} STATIC ${ARGN})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  # The level by its option, which CMake 3.25 does not know of nvcc; extensions, else it adds its own idea of the level.
  set_target_properties(${target} PROPERTIES CUDA_EXTENSIONS ON)
  target_compile_options(${target} PRIVATE -std=c++20 "SHELL:--Werror all-warnings" -Xcompiler=-Wall,-Wextra,-Werror)
endfunction()

# c10d's NCCL header is empty without the definition; only these files see it.
function(chiliad_use_nccl)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS USE_C10D_NCCL SKIP_PRECOMPILE_HEADERS ON)
endfunction()
