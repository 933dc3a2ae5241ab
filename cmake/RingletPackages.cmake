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

# OpenBLAS, the build without threads of its own: a replica brings its own threads, and a
# ThreadSanitizer build must not link an OpenMP run time. pkg-config's files differ between
# distributions, so the library and the header are looked for by name.
find_library(OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-serial)
find_path(OPENBLAS_INCLUDE_DIR NAMES cblas.h
          PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial openblas-serial)
if(NOT OPENBLAS_LIBRARY OR NOT OPENBLAS_INCLUDE_DIR)
  message(FATAL_ERROR "OpenBLAS was not found. Install it with:  sudo apt-get install "
                      "libopenblas-serial-dev\n(scripts/setup installs everything that Ringlet needs.)")
endif()
add_library(ringlet_blas INTERFACE)
target_include_directories(ringlet_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
target_link_libraries(ringlet_blas INTERFACE ${OPENBLAS_LIBRARY})
