# What `cmake --install BUILD --prefix PREFIX` brings, and where; PREFIX may be moved afterwards.
#
#   bin/ringlet                the program
#   lib/libringlet_*.a         a static library a room
#   lib/cmake/ringlet/         find_package(ringlet): ringlet::base, ::kernels, ::nn, ::comm, ::data, ::train, and
#                              ringlet::ringlet for all
#   lib/pkgconfig/ringlet.pc   the same for pkg-config: all rooms
#   include/ringlet/ROOM/      headers, included as in the sources: "nn/tape.h"; the most used: "ringlet.h"
#   share/                     completions for bash, zsh and fish; the manual page
#   share/ringlet/learn/learn  the course, with the strategies' sources beside it that are its solutions
#
# The component `program` is the program, its completions and page, and the course; all else is `development`
# (scripts/package makes a package of each).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# Objects lie in ringlet_kernels' archive; their targets come along for what they link to.
ringlet_versions_of(versions ringlet_lanes ringlet_margin ringlet_norm ringlet_reduction)
set(targets ringlet_all ringlet_build ringlet_blas ringlet_lanes ${versions} ringlet_base ringlet_kernels ringlet_nn ringlet_comm
            ringlet_data ringlet_train)
if(RINGLET_WITH_CUDA)
  list(APPEND targets ringlet_cuda)
endif()
get_property(more GLOBAL PROPERTY RINGLET_INSTALLED)  # of ringlet_proto()
install(TARGETS ${targets} ${more} EXPORT ringletTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringlet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
# A system has several builds of OpenBLAS by one name; the program takes the one that it was built for. Where another
# machine's system lies in a folder here, it names what it will find there.
get_filename_component(RINGLET_OPENBLAS_HINT ${OPENBLAS_PTHREAD_LIBRARY} DIRECTORY)
if(CMAKE_SYSROOT)
  string(REPLACE "${CMAKE_SYSROOT}" "" RINGLET_OPENBLAS_HINT ${RINGLET_OPENBLAS_HINT})
endif()
set_property(TARGET ringlet APPEND PROPERTY INSTALL_RPATH ${RINGLET_OPENBLAS_HINT})
if(TARGET ringlet_mpi)
  # The program looks beside itself.
  install(TARGETS ringlet_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

# Left out: back ends and what chooses them, headers of libraries that a user of Ringlet need not have, and
# the program.
set(private kernels/implementations.h)
file(GLOB public CONFIGURE_DEPENDS RELATIVE ${ringlet_SOURCE_DIR} ${ringlet_SOURCE_DIR}/kernels/*.h)
foreach(room base nn comm data train)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${ringlet_SOURCE_DIR} ${ringlet_SOURCE_DIR}/${room}/*.h)
  list(APPEND public ${headers})
endforeach()
list(FILTER public EXCLUDE REGEX "^comm/transport/(between|gloo|mpi|nccl)/|^train/telemetry/tensorboard/")
list(REMOVE_ITEM public ${private})
foreach(header IN LISTS public)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${ringlet_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlet/${folder})
endforeach()
install(FILES ${ringlet_SOURCE_DIR}/ringlet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlet)
install(FILES ${ringlet_BINARY_DIR}/generated/train/recipe/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlet/train/recipe)

install(DIRECTORY ${ringlet_SOURCE_DIR}/learn DESTINATION ${CMAKE_INSTALL_DATADIR}/ringlet USE_SOURCE_PERMISSIONS
        COMPONENT program PATTERN my EXCLUDE)
install(PROGRAMS ${ringlet_SOURCE_DIR}/scripts/learn DESTINATION ${CMAKE_INSTALL_DATADIR}/ringlet/learn COMPONENT program)
foreach(strategy naive ring two_shot two_level)
  install(FILES ${ringlet_SOURCE_DIR}/comm/all_reduce/${strategy}.cc
          DESTINATION ${CMAKE_INSTALL_DATADIR}/ringlet/comm/all_reduce COMPONENT program)
endforeach()

# Where a user's CMake looks first for what has no package of its own.
set(RINGLET_GLOO_HINT "")
set(RINGLET_WITH_GLOO FALSE)
if(GLOO_LIBRARY)
  set(RINGLET_WITH_GLOO TRUE)
  get_filename_component(RINGLET_GLOO_HINT ${GLOO_LIBRARY} DIRECTORY)
  if(CMAKE_SYSROOT)
    string(REPLACE "${CMAKE_SYSROOT}" "" RINGLET_GLOO_HINT ${RINGLET_GLOO_HINT})
  endif()
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ringlet)
configure_package_config_file(${ringlet_SOURCE_DIR}/cmake/ringletConfig.cmake.in
                              ${ringlet_BINARY_DIR}/ringletConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${ringlet_BINARY_DIR}/ringletConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)  # below 1.0 a minor version may break
install(FILES ${ringlet_BINARY_DIR}/ringletConfig.cmake ${ringlet_BINARY_DIR}/ringletConfigVersion.cmake
        DESTINATION ${package})
install(EXPORT ringletTargets NAMESPACE ringlet:: DESTINATION ${package})

# For pkg-config: the rooms from those that see others to those that are seen, then what has no file of its own.
set(RINGLET_PC_ROOMS "-lringlet_train ${more} -lringlet_nn -lringlet_comm -lringlet_data -lringlet_kernels")
string(REGEX REPLACE "[ ;](ringlet_[a-z_]*proto)" " -l\\1" RINGLET_PC_ROOMS "${RINGLET_PC_ROOMS}")
set(RINGLET_PC_OTHERS "-lringlet_base -L${RINGLET_OPENBLAS_HINT} -Wl,-rpath,${RINGLET_OPENBLAS_HINT} -lopenblas")
if(RINGLET_WITH_GLOO)
  string(APPEND RINGLET_PC_OTHERS " -L${RINGLET_GLOO_HINT} -lgloo")
endif()
if(RINGLET_WITH_CUDA)
  string(APPEND RINGLET_PC_OTHERS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
  foreach(folder IN LISTS CMAKE_INSTALL_RPATH)  # where a program looks for what it opens at run time
    string(APPEND RINGLET_PC_OTHERS " -Wl,-rpath,${folder}")
  endforeach()
endif()
string(APPEND RINGLET_PC_OTHERS " -pthread -ldl")
# Beside the file, which may be moved with its prefix; a folder that was named as an absolute one stays where it is.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RINGLET_PC_PREFIX "\${pcfiledir}/${up}")
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(RINGLET_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(RINGLET_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${folder}})
    set(RINGLET_PC_${folder} ${CMAKE_INSTALL_${folder}})
  endif()
endforeach()
configure_file(${ringlet_SOURCE_DIR}/cmake/ringlet.pc.in ${ringlet_BINARY_DIR}/ringlet.pc @ONLY)
install(FILES ${ringlet_BINARY_DIR}/ringlet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(RINGLET_RUN "")
foreach(word IN LISTS CMAKE_CROSSCOMPILING_EMULATOR)
  string(APPEND RINGLET_RUN "\"${word}\" ")
endforeach()
# install_printed(FILE ARGUMENTS...): what the program prints with these arguments, as a file below the prefix (or at an
# absolute path).
function(install_printed file)
  list(JOIN ARGN " " arguments)
  set(prefix "\${CMAKE_INSTALL_PREFIX}/")
  if(IS_ABSOLUTE ${file})
    set(prefix "")
  endif()
  install(CODE "
    set(file \"\$ENV{DESTDIR}${prefix}${file}\")
    get_filename_component(folder \${file} DIRECTORY)
    file(MAKE_DIRECTORY \${folder})
    message(STATUS \"Writing: \${file}\")
    execute_process(COMMAND ${RINGLET_RUN}\"$<TARGET_FILE:ringlet>\" ${arguments} OUTPUT_FILE \${file}
                    COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD \${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)" COMPONENT program)
endfunction()
install_printed(${CMAKE_INSTALL_DATADIR}/bash-completion/completions/ringlet completion bash)
install_printed(${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_ringlet completion zsh)
install_printed(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/ringlet.fish completion fish)
install_printed(${CMAKE_INSTALL_MANDIR}/man1/ringlet.1 help --man)
