# Whether this build has CUDA: RINGLET_WITH_CUDA, and why not. AUTO takes it where everything is there.
#
#   RINGLET_CUDA                 AUTO (default), ON (what is missing is an error) or OFF
#   CMAKE_CUDA_ARCHITECTURES     or CUDAARCHS in the environment; default 80 and 90, and PTX of 90 for what
#                                comes later
#   CUBLASLT_ROOT, CUDNN_ROOT, NCCL_ROOT   where they are not in the toolkit, the system or Python's site-packages
#
# cuBLASLt, cuDNN and NCCL are opened at run time (base/shared_library.h); their folders go into the
# program's search path.
set(RINGLET_CUDA AUTO CACHE STRING "Build for GPUs: AUTO, ON or OFF")
set(RINGLET_WITH_CUDA FALSE)
set(RINGLET_WHY_NO_CUDA "it was configured with RINGLET_CUDA=OFF")

if(RINGLET_STATIC)
  set(RINGLET_CUDA OFF)
  set(RINGLET_WHY_NO_CUDA "it is one file, and GPUs need NVIDIA's libraries (scripts/package deb --cuda makes one with them)")
endif()

if(NOT RINGLET_CUDA STREQUAL OFF)
  include(CheckLanguage)
  include(PythonNvidia)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})  # the toolkit need not be on PATH
    find_program(RINGLET_NVCC nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} PATHS /usr/local/cuda /opt/cuda
                 PATH_SUFFIXES bin)
    if(RINGLET_NVCC)
      set(ENV{CUDACXX} ${RINGLET_NVCC})
    endif()
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(RINGLET_WHY_NO_CUDA "there is no nvcc that works (install the CUDA toolkit)")
  else()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures to compile for")
    endif()
    foreach(architecture ${CMAKE_CUDA_ARCHITECTURES} $ENV{CUDAARCHS})
      if(architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS 80)
        message(FATAL_ERROR "Ringlet's kernels are for CUDA architecture 80 (A100) and newer, not ${architecture}; say -D RINGLET_CUDA=OFF")
      endif()
    endforeach()
    enable_language(CUDA)
    find_package(CUDAToolkit QUIET)
    find_package(CUDNN 9.8 QUIET)
    find_package(NCCL 2.18 QUIET)
    find_nvidia_library(CUBLASLT HEADER cublasLt.h LIBRARY libcublasLt.so.${CUDAToolkit_VERSION_MAJOR}
                        WHEEL cu${CUDAToolkit_VERSION_MAJOR} cublas)
    if(NOT CUDAToolkit_FOUND)
      set(RINGLET_WHY_NO_CUDA "the CUDA toolkit beside ${CMAKE_CUDA_COMPILER} is not complete")
    elseif(CUDAToolkit_VERSION VERSION_LESS 12.0)
      set(RINGLET_WHY_NO_CUDA "CUDA ${CUDAToolkit_VERSION} is too old; C++20 needs 12.0")
    elseif(NOT CUDNN_FOUND)
      set(RINGLET_WHY_NO_CUDA "cuDNN 9.8 or newer was not found (install it, or say -D CUDNN_ROOT=DIR)")
    elseif(NOT NCCL_FOUND)
      set(RINGLET_WHY_NO_CUDA "NCCL was not found (install it, or say -D NCCL_ROOT=DIR)")
    elseif(NOT CUBLASLT_RUNTIME)
      set(RINGLET_WHY_NO_CUDA "cuBLASLt was not found (install it, or say -D CUBLASLT_ROOT=DIR)")
    else()
      set(RINGLET_WITH_CUDA TRUE)
    endif()
  endif()
  if(RINGLET_CUDA STREQUAL ON AND NOT RINGLET_WITH_CUDA)
    message(FATAL_ERROR "RINGLET_CUDA is ON, but ${RINGLET_WHY_NO_CUDA}")
  endif()
endif()

if(RINGLET_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake up to 3.25 does not know that nvcc 12 has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  if(RINGLET_CUDA_STAND_IN)
    set(CMAKE_CUDA_RUNTIME_LIBRARY None)
    set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)  # the same bytes wherever they are built
    list(APPEND CMAKE_BUILD_RPATH ${ringlet_BINARY_DIR}/stand_in)
  endif()
  foreach(library CUDNN_RUNTIME NCCL_RUNTIME CUBLASLT_RUNTIME)
    get_filename_component(folder ${${library}} DIRECTORY)
    list(APPEND RINGLET_CUDA_FOLDERS ${folder})
  endforeach()
  list(APPEND CMAKE_BUILD_RPATH ${RINGLET_CUDA_FOLDERS})
  list(APPEND CMAKE_INSTALL_RPATH ${RINGLET_CUDA_FOLDERS})
  list(REMOVE_DUPLICATES CMAKE_BUILD_RPATH)
  list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}, cuDNN ${CUDNN_VERSION}, NCCL ${NCCL_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Building without CUDA: ${RINGLET_WHY_NO_CUDA}")
endif()

# ringlet_cuda_kernels(TARGET FILE.cu...): what launches kernels of kernels/grid/, for the GPU or the stand-in.
function(ringlet_cuda_kernels target)
  target_sources(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false -Xptxas=--warn-on-local-memory-usage,--warn-on-spills>)
  if(RINGLET_STAND_IN_PTX)  # read as text, from the program's own fat binaries
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 90-virtual)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-no-compress>)
  elseif(RINGLET_CUDA_STAND_IN)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
    target_include_directories(${target} BEFORE PRIVATE ${ringlet_SOURCE_DIR}/tests/cuda_stand_in/include)
  endif()
endfunction()
