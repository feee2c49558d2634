# chiliad_cuda: headers of the CUDA toolkit and of NCCL, and the CUDA half of libtorch. Torch modules with device sources link it.
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

# c10d's NCCL header is empty without the definition; only these files see it.
function(chiliad_use_nccl)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS USE_C10D_NCCL SKIP_PRECOMPILE_HEADERS ON)
endfunction()
