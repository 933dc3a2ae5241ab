# Where Python's wheels put NVIDIA's libraries: site-packages/nvidia/<package>/{include,lib}. A machine
# with PyTorch has cuDNN and NCCL there, and often nowhere else. The toolkit's own libraries have a folder each in
# the wheels of CUDA 12 (nvidia/cublas), and one for all in those of CUDA 13 (nvidia/cu13).

# python_nvidia_folders(<result>): the existing .../nvidia folders of the python3 on PATH.
function(python_nvidia_folders result)
  if(NOT DEFINED CACHE{RINGLET_PYTHON_NVIDIA_FOLDERS})
    find_program(PYTHON3 python3)
    set(folders "")
    if(PYTHON3)
      execute_process(
        COMMAND ${PYTHON3} -c
                "import os,sys; print(';'.join(d for d in (os.path.join(p,'nvidia') for p in sys.path if p) if os.path.isdir(d)))"
        OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    set(RINGLET_PYTHON_NVIDIA_FOLDERS "${folders}" CACHE INTERNAL "nvidia folders of Python's site-packages")
  endif()
  set(${result} "${RINGLET_PYTHON_NVIDIA_FOLDERS}" PARENT_SCOPE)
endfunction()

# find_nvidia_library(<NAME> HEADER h LIBRARY file.so.N WHEEL folder...): sets <NAME>_INCLUDE_DIR and
# <NAME>_RUNTIME, looking into <NAME>_ROOT, the CUDA toolkit, the system and Python's wheels, in this order, and there
# into each folder in turn.
# Only the library that is opened at run time is asked for, not the link that a linker wants.
macro(find_nvidia_library name)
  cmake_parse_arguments(FIND "" "HEADER;LIBRARY" "WHEEL" ${ARGN})
  python_nvidia_folders(FIND_NVIDIA)
  set(FIND_FOLDERS "")
  foreach(wheel ${FIND_WHEEL})
    foreach(nvidia ${FIND_NVIDIA})
      list(APPEND FIND_FOLDERS ${nvidia}/${wheel})
    endforeach()
  endforeach()
  set(FIND_ROOTS ${${name}_ROOT} $ENV{${name}_ROOT} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
  find_path(${name}_INCLUDE_DIR ${FIND_HEADER} HINTS ${FIND_ROOTS} ${CUDAToolkit_INCLUDE_DIRS}
            PATHS ${FIND_FOLDERS} PATH_SUFFIXES include)
  find_file(${name}_RUNTIME ${FIND_LIBRARY} HINTS ${FIND_ROOTS} ${CUDAToolkit_LIBRARY_DIR}
            PATHS /usr/lib /usr/local/lib ${FIND_FOLDERS}
            PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE} ${CMAKE_LIBRARY_ARCHITECTURE})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_RUNTIME)
endmacro()
