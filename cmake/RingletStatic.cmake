# The program as one file, which needs no library and no other file (scripts/package static): RINGLET_STATIC.
#
# It has neither CUDA, NCCL, MPI, Gloo nor WebP, which are libraries that it would open or that Debian has no archives of.
option(RINGLET_STATIC "Link the program so that it needs no library; one machine, processors only" OFF)
set(RINGLET_FMT fmt::fmt)
if(RINGLET_STATIC)
  set(RINGLET_FMT fmt::fmt-header-only)  # the package has no archive
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(Protobuf_USE_STATIC_LIBS ON)
  set(CMAKE_SKIP_RPATH ON)
endif()

# ringlet_static(TARGET): a program is linked so.
function(ringlet_static target)
  # Debian's archive of OpenBLAS has every product of every precision for every processor in it: 25 MB.
  set(cores ${ringlet_BINARY_DIR}/openblas_cores.o)
  add_custom_command(
    OUTPUT ${cores}
    COMMAND ${ringlet_SOURCE_DIR}/cmake/openblas_cores ${OPENBLAS_PTHREAD_LIBRARY} ${cores}
            ${CMAKE_AR} ${CMAKE_NM} ${CMAKE_OBJCOPY} ${CMAKE_LINKER}
    DEPENDS ${OPENBLAS_PTHREAD_LIBRARY} ${ringlet_SOURCE_DIR}/cmake/openblas_cores
    COMMENT "Taking the products of single precision from OpenBLAS"
    VERBATIM)
  set_source_files_properties(${cores} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${cores})
  target_link_options(${target} PRIVATE -static -Wl,--gc-sections)
endfunction()
