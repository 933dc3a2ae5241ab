# The packages that Ringlet stands on. Each is a Debian/Ubuntu package; a missing one is named with its remedy.

macro(ringlet_package name debian)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${name} was not found. Install it with:  sudo apt-get install ${debian}\n"
                        "(scripts/setup installs everything that Ringlet needs.)")
  endif()
endmacro()

ringlet_package(fmt libfmt-dev)
ringlet_package(ZLIB zlib1g-dev)
ringlet_package(nlohmann_json nlohmann-json3-dev)
ringlet_package(CLI11 libcli11-dev)
ringlet_package(Protobuf "libprotobuf-dev protobuf-compiler")
if(NOT Protobuf_PROTOC_EXECUTABLE)
  message(FATAL_ERROR "protoc was not found. Install it with:  sudo apt-get install protobuf-compiler")
endif()

# OpenBLAS, the build with POSIX threads: the serial one of Debian 12 and its relatives is not safe to
# call from several threads at once (it loses products), and a ThreadSanitizer build must not link an
# OpenMP run time. A replica brings its own threads, so kernels/cpu/gemm.h keeps OpenBLAS to one.
# pkg-config's files differ between distributions, so library and header are looked for by name.
find_library(OPENBLAS_PTHREAD_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread)
find_path(OPENBLAS_PTHREAD_INCLUDE_DIR NAMES cblas.h
          PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread openblas-pthread)
if(NOT OPENBLAS_PTHREAD_LIBRARY OR NOT OPENBLAS_PTHREAD_INCLUDE_DIR)
  message(FATAL_ERROR "OpenBLAS was not found. Install it with:  sudo apt-get install "
                      "libopenblas-pthread-dev\n(scripts/setup installs everything that Ringlet needs.)")
endif()
add_library(ringlet_blas INTERFACE)
target_include_directories(ringlet_blas SYSTEM INTERFACE $<BUILD_INTERFACE:${OPENBLAS_PTHREAD_INCLUDE_DIR}>)
target_link_libraries(ringlet_blas INTERFACE $<BUILD_INTERFACE:${OPENBLAS_PTHREAD_LIBRARY}>
                                             $<INSTALL_INTERFACE:ringlet::openblas>)

# Gloo carries data between processes (--processes). Without it all else is built. Its CMake package
# names the machine that Debian built it on, so library and header are looked for by name.
find_library(GLOO_LIBRARY NAMES gloo)
find_path(GLOO_INCLUDE_DIR NAMES gloo/context.h)
if(NOT GLOO_LIBRARY OR NOT GLOO_INCLUDE_DIR)
  unset(GLOO_LIBRARY CACHE)
  message(STATUS "Gloo was not found: ranks run in one process only. For more:  sudo apt-get install libgloo-dev")
endif()

# MPI carries them too (--transport mpi), in a module of its own. Only C++ is asked for; the language's own
# bindings (gone from MPI 3) are not.
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "MPI was not found: no --transport mpi, no bench/peers/openmpi_all_reduce. "
                 "For both:  sudo apt-get install libopenmpi-dev openmpi-bin")
endif()

# toml++ reads configuration files (--config), header-only. Without it all else is built.
find_path(TOMLPLUSPLUS_INCLUDE_DIR NAMES toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE_DIR)
  unset(TOMLPLUSPLUS_INCLUDE_DIR CACHE)
  message(STATUS "toml++ was not found: no --config. For more:  sudo apt-get install libtomlplusplus-dev")
endif()
