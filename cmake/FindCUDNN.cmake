# Finds cuDNN 9: its headers to compile with, and the library that is opened at run time.
#
#   CUDNN_ROOT        (variable or environment) a folder with include/ and lib/, looked into first
#   CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR, CUDNN_RUNTIME (libcudnn.so.9)
#   CUDNN::CUDNN      the headers; nothing is linked
include(${CMAKE_CURRENT_LIST_DIR}/PythonNvidia.cmake)
find_nvidia_library(CUDNN HEADER cudnn_version.h LIBRARY libcudnn.so.9 WHEEL cudnn)

if(CUDNN_INCLUDE_DIR)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h CUDNN_LINES REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCHLEVEL ([0-9]+).*" "\\1.\\2.\\3" CUDNN_VERSION
         "${CUDNN_LINES}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_RUNTIME CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
if(CUDNN_FOUND AND NOT TARGET CUDNN::CUDNN)
  add_library(CUDNN::CUDNN INTERFACE IMPORTED)
  set_target_properties(CUDNN::CUDNN PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
