# Finds NCCL 2: its header to compile with, and the library that is opened at run time.
#
#   NCCL_ROOT         (variable or environment) a folder with include/ and lib/, looked into first
#   NCCL_FOUND, NCCL_VERSION, NCCL_INCLUDE_DIR, NCCL_RUNTIME (libnccl.so.2)
#   NCCL::NCCL        the header; nothing is linked
include(${CMAKE_CURRENT_LIST_DIR}/PythonNvidia.cmake)
find_nvidia_library(NCCL HEADER nccl.h LIBRARY libnccl.so.2 WHEEL nccl)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h NCCL_LINES REGEX "#define NCCL_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" NCCL_VERSION
         "${NCCL_LINES}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_RUNTIME NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL INTERFACE IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
