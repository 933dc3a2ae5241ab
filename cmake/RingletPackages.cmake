# The packages that Ringlet stands on, each one of Debian's and Ubuntu's. All that are missing are named in one message.
set(RINGLET_MISSING "")      # what was not found
set(RINGLET_MISSING_DEB "")  # and the packages that have it

# ringlet_needs(VARIABLE NAME DEBIAN...): notes NAME as missing where VARIABLE says no.
macro(ringlet_needs variable name)
  if(NOT ${variable})
    list(APPEND RINGLET_MISSING ${name})
    list(APPEND RINGLET_MISSING_DEB ${ARGN})
  endif()
endmacro()

# ringlet_package(NAME DEBIAN ...): find_package(NAME ...)
macro(ringlet_package name debian)
  find_package(${name} ${ARGN} QUIET)
  ringlet_needs(${name}_FOUND ${name} ${debian})
endmacro()

ringlet_package(fmt libfmt-dev)
ringlet_package(ZLIB zlib1g-dev)
ringlet_package(OpenSSL libssl-dev COMPONENTS Crypto)
ringlet_package(nlohmann_json nlohmann-json3-dev)
ringlet_package(Protobuf libprotobuf-dev)
find_program(Protobuf_PROTOC_EXECUTABLE protoc)
ringlet_needs(Protobuf_PROTOC_EXECUTABLE protoc protobuf-compiler)
find_path(STB_INCLUDE_DIR NAMES stb_image.h PATH_SUFFIXES stb)
ringlet_needs(STB_INCLUDE_DIR stb_image.h libstb-dev)
if(RINGLET_PROGRAM)
  ringlet_package(CLI11 libcli11-dev)
endif()
if(RINGLET_TESTS AND NOT RINGLET_ONLY_PROGRAM AND NOT RINGLET_FUZZ)
  ringlet_package(GTest libgtest-dev)
endif()
if(RINGLET_BENCH AND NOT RINGLET_ONLY_PROGRAM AND NOT RINGLET_FUZZ)
  ringlet_package(benchmark libbenchmark-dev)
endif()

# OpenBLAS, the build with POSIX threads: the serial one of Debian 12 and its relatives is not safe to
# call from several threads at once (it loses products), and a ThreadSanitizer build must not link an
# OpenMP run time. A replica brings its own threads, so kernels/cpu/gemm.h keeps OpenBLAS to one.
# pkg-config's files differ between distributions, so library and header are looked for by name.
find_library(OPENBLAS_PTHREAD_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread)
find_path(OPENBLAS_PTHREAD_INCLUDE_DIR NAMES cblas.h
          PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread openblas-pthread)
if(NOT OPENBLAS_PTHREAD_LIBRARY OR NOT OPENBLAS_PTHREAD_INCLUDE_DIR)
  ringlet_needs(FALSE OpenBLAS libopenblas-pthread-dev)
endif()

if(RINGLET_MISSING)
  list(JOIN RINGLET_MISSING ", " missing)
  list(JOIN RINGLET_MISSING_DEB " " packages)
  message(FATAL_ERROR "These were not found: ${missing}. Install them with:\n"
                      "    sudo apt-get install ${packages}\n"
                      "(scripts/setup installs everything that Ringlet needs.)")
endif()

add_library(ringlet_blas INTERFACE)
target_include_directories(ringlet_blas SYSTEM INTERFACE $<BUILD_INTERFACE:${OPENBLAS_PTHREAD_INCLUDE_DIR}>)
target_link_libraries(ringlet_blas INTERFACE $<BUILD_INTERFACE:${OPENBLAS_PTHREAD_LIBRARY}>
                                             $<INSTALL_INTERFACE:ringlet::openblas>)

# Gloo carries data between processes (--processes). Without it all else is built. Its CMake package
# names the machine that Debian built it on, so library and header are looked for by name.
if(NOT RINGLET_STATIC)
  find_library(GLOO_LIBRARY NAMES gloo)
  find_path(GLOO_INCLUDE_DIR NAMES gloo/context.h)
  if(NOT GLOO_LIBRARY OR NOT GLOO_INCLUDE_DIR)
    unset(GLOO_LIBRARY CACHE)
    message(STATUS "Gloo was not found: ranks run in one process only. For more:  sudo apt-get install libgloo-dev")
  endif()
endif()

# MPI carries them too (--transport mpi), in a module of its own. Only C++ is asked for; the language's own
# bindings (gone from MPI 3) are not.
if(NOT RINGLET_STATIC)
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(STATUS "MPI was not found: no --transport mpi, no bench/peers/openmpi_all_reduce. "
                   "For both:  sudo apt-get install libopenmpi-dev openmpi-bin")
  endif()
endif()

# toml++ reads configuration files (--config), header-only. Without it all else is built.
find_path(TOMLPLUSPLUS_INCLUDE_DIR NAMES toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE_DIR)
  unset(TOMLPLUSPLUS_INCLUDE_DIR CACHE)
  message(STATUS "toml++ was not found: no --config. For more:  sudo apt-get install libtomlplusplus-dev")
endif()
