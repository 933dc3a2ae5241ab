# How everything in Ringlet is compiled: one interface target that each room links to.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
  else()
    set(CMAKE_BUILD_TYPE Release)  # of Ringlet alone: without optimization it takes ten times as long
  endif()
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(RINGLET_STATIC)  # the linker leaves out what nothing calls
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections> $<$<COMPILE_LANGUAGE:CXX>:-fdata-sections>)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  if(CMAKE_GENERATOR STREQUAL Ninja)  # which runs all compilers in the folder of the build
    set(CMAKE_CXX_COMPILER_LAUNCHER ${ringlet_SOURCE_DIR}/cmake/compile_cached ${ringlet_SOURCE_DIR} ${CCACHE})
  endif()
endif()

# Where it is CI that builds; a warning of a compiler that we have not seen must stop nobody else.
# What sanitizers add confuses the compiler's analysis of the flow: their builds only warn.
set(RINGLET_SANITIZE "" CACHE STRING "Sanitizers to build with: address;undefined or thread")
set(strict OFF)
if(DEFINED ENV{CI} AND PROJECT_IS_TOP_LEVEL AND NOT RINGLET_SANITIZE)
  set(strict ON)
endif()
option(RINGLET_WERROR "Treat warnings as errors" ${strict})

add_library(ringlet_build INTERFACE)
target_include_directories(ringlet_build INTERFACE $<BUILD_INTERFACE:${ringlet_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:include/ringlet>)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(ringlet_build INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-psabi>>
    # constexpr functions of host code (Philox, the sampler) are taken as they are; -lineinfo is for profilers.
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra>>)
else()
  # A project that has this as a part compiles its own as it likes. Its warnings and its -Werror are not for Ringlet.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-w> $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi> $<$<COMPILE_LANGUAGE:CXX>:-fopenmp-simd>
                      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  target_compile_features(ringlet_build INTERFACE cxx_std_20)
endif()
if(RINGLET_WERROR)
  target_compile_options(ringlet_build INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Werror>>
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>>)
endif()
foreach(sanitizer IN LISTS RINGLET_SANITIZE)
  target_compile_options(ringlet_build INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizer} -fno-omit-frame-pointer>)
  target_link_options(ringlet_build INTERFACE -fsanitize=${sanitizer})
endforeach()
if("undefined" IN_LIST RINGLET_SANITIZE)
  # Left out: what AddressSanitizer finds as well, and what doubles the time to compile (vptr).
  target_compile_options(ringlet_build INTERFACE -fno-sanitize-recover=undefined
                         -fno-sanitize=null,object-size,vptr)
  # A check of alignment stands before each use of a pointer or a reference. Tests and commands mostly hand strings and lists
  # around; a third of the time to compile them goes with it. So folders may do without, by this property.
  define_property(TARGET PROPERTY RINGLET_UNCHECKED_ALIGNMENT INHERITED
                  BRIEF_DOCS "No checks of alignment" FULL_DOCS "A folder's property holds for its targets")
  target_compile_options(ringlet_build INTERFACE
    $<$<AND:$<BOOL:$<TARGET_PROPERTY:RINGLET_UNCHECKED_ALIGNMENT>>,$<COMPILE_LANGUAGE:CXX>>:-fno-sanitize=alignment>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  target_compile_options(ringlet_build INTERFACE
                         "$<BUILD_INTERFACE:SHELL:-include ${ringlet_SOURCE_DIR}/cmake/source_location.h>")
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PROJECT_IS_TOP_LEVEL)  # the pragmas and warnings of g++ mean nothing to it
  target_compile_options(ringlet_build INTERFACE
                         $<BUILD_INTERFACE:-Wno-unknown-pragmas> $<BUILD_INTERFACE:-Wno-unknown-warning-option>
                         # `#pragma omp simd` says that a loop may be vectorised. Those that call exp or tanh are not.
                         $<BUILD_INTERFACE:-Wno-pass-failed>
                         # Fields that a designated initializer leaves out are zero on purpose.
                         $<BUILD_INTERFACE:-Wno-missing-designated-field-initializers>)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
    # Else each std::stable_sort warns: of what libstdc++ before 14 calls in itself.
    target_compile_options(ringlet_build INTERFACE $<BUILD_INTERFACE:-Wno-deprecated-declarations>)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PROJECT_IS_TOP_LEVEL)
  # Without the parameter a tenth of the time goes into collecting garbage; with it a group of files takes up to a fifth more memory.
  target_compile_options(ringlet_build INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>>
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>>)
endif()
if(PROJECT_IS_TOP_LEVEL)
  # `#pragma omp simd` marks loops that may be vectorised. The option brings no OpenMP run time. With it clang 16 refuses to
  # capture structured bindings, so folders without such loops may do without, by this property.
  define_property(TARGET PROPERTY RINGLET_NO_OPENMP INHERITED
                  BRIEF_DOCS "No #pragma omp" FULL_DOCS "A folder's property holds for its targets")
  set(no_openmp $<AND:$<CXX_COMPILER_ID:Clang>,$<BOOL:$<TARGET_PROPERTY:RINGLET_NO_OPENMP>>>)
  target_compile_options(ringlet_build INTERFACE
    $<BUILD_INTERFACE:$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:${no_openmp}>>:-fopenmp-simd>>)
endif()

find_package(Threads REQUIRED)
target_link_libraries(ringlet_build INTERFACE Threads::Threads ${RINGLET_FMT})

# A third of the time to compile a small file goes into parsing the standard library's headers. A precompiled header is good
# for one set of options only, so there is one for rooms that compute and one for the others.
option(RINGLET_PCH "Parse the standard library's headers once, not once a file" ON)

# For the calling folder and those below: rooms that move no numbers themselves (what is computed, is computed in kernels/ and
# data/). Nearly half of the time to compile them goes. g++ has fewer passes at -Og than at -O1, and less is copied into callers.
macro(ringlet_light_room)
  set(RINGLET_LIGHT TRUE)
  add_compile_options(${RINGLET_LIGHT_OPTIONS})
endmacro()
set(RINGLET_LIGHT_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(RINGLET_LIGHT_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>
                            $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:--param=max-inline-insns-single=15>)
endif()
if(RINGLET_SANITIZE)
  # To optimise what the sanitizers add is most of the compiler's work, and nothing here runs long.
  list(APPEND RINGLET_LIGHT_OPTIONS -O0)
endif()

# ringlet_precompiled(TARGET HEADERS...): a target whose precompiled header others use.
function(ringlet_precompiled target)
  if(RINGLET_PCH)
    file(CONFIGURE OUTPUT ${ringlet_BINARY_DIR}/generated/${target}.cc CONTENT "")
    add_library(${target} OBJECT ${ringlet_BINARY_DIR}/generated/${target}.cc)
    target_link_libraries(${target} PRIVATE ringlet_build)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
ringlet_precompiled(ringlet_pch <cmake/precompiled.h>)
ringlet_precompiled(ringlet_pch_light <cmake/precompiled.h> <nlohmann/json.hpp>)
if(RINGLET_PCH)
  target_link_libraries(ringlet_pch_light PRIVATE nlohmann_json::nlohmann_json)
  target_compile_options(ringlet_pch_light PRIVATE ${RINGLET_LIGHT_OPTIONS})
endif()

# Most of what a small file costs is reading headers and instantiating templates (of a JSON value, of fmt::format). So the files of a room are compiled many at a time, and names in their unnamed
# namespaces have to differ. Lint and the preset `debug`, which is for those who edit, compile each file by itself.
option(RINGLET_UNITY "Compile the files of a room many at a time" ON)
if(RINGLET_UNITY AND PROJECT_IS_TOP_LEVEL)
  # Warnings about names of other files that only stand side by side here. The preset debug warns.
  target_compile_options(ringlet_build INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage -Wno-shadow>>)
endif()

# ringlet_unity(TARGET AT_ONCE [ALONE FILES...]): in groups of AT_ONCE or fewer, all about as long. The compiler takes some 25 MB
# for each file of a group. ALONE: those that bring an operator new, options or a `using` of their own.
function(ringlet_unity target at_once)
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  if(NOT RINGLET_UNITY)
    return()
  endif()
  # At the end of the folder, when target_sources() and set_source_files_properties() have said the rest.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL ringlet_unity_now ${target} ${at_once} ${ARG_ALONE})")
endfunction()

# Not by CMake's own UNITY_BUILD: what that writes holds the checkout's path, and so no other checkout is served with what
# ccache has of it.
function(ringlet_unity_now target at_once)
  get_target_property(all ${target} SOURCES)
  set(rest)
  foreach(source IN LISTS all)
    get_filename_component(file ${source} ABSOLUTE)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    file(RELATIVE_PATH path ${ringlet_SOURCE_DIR} ${file})
    if(NOT path MATCHES "^[^.].*\\.cc$" OR source IN_LIST ARGN OR options OR definitions)
      list(APPEND rest ${source})
      continue()
    endif()
    list(APPEND paths ${path})
  endforeach()
  list(LENGTH paths count)
  math(EXPR groups "(${count} + ${at_once} - 1) / ${at_once}")
  set(index 0)
  foreach(path IN LISTS paths)
    math(EXPR group "${index} * ${groups} / ${count}")
    string(APPEND text_${group} "#include \"${path}\"\n")
    math(EXPR index "${index} + 1")
  endforeach()
  set(group 0)
  while(group LESS groups)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}_${group}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${group}}" @ONLY)
    list(APPEND rest ${unit})
    math(EXPR group "${group} + 1")
  endwhile()
  set_property(TARGET ${target} PROPERTY SOURCES ${rest})
endfunction()

# ringlet_parsed(TARGET [LIGHT]): with the precompiled header of its room's options. LIGHT: as in a light room; not under
# sanitizers, where this target would be too slow without any optimization.
function(ringlet_parsed target)
  if("LIGHT" IN_LIST ARGN AND NOT RINGLET_SANITIZE)
    set(RINGLET_LIGHT TRUE)
    target_compile_options(${target} PRIVATE ${RINGLET_LIGHT_OPTIONS})
  endif()
  if(RINGLET_PCH AND RINGLET_LIGHT)
    target_precompile_headers(${target} REUSE_FROM ringlet_pch_light)
  elseif(RINGLET_PCH)
    target_precompile_headers(${target} REUSE_FROM ringlet_pch)
  endif()
endfunction()

# ringlet_core(NAME SOURCES... [LINK ...]): what of a room stands without the rest, as objects, `ringlet_NAME_core`. The
# room's library has them as well. Most of the time to compile a room goes into the rest, which the course's checker can do without.
function(ringlet_core name)
  ringlet_objects(${name}_core ${ARGN})
endfunction()

# ringlet_fast(NAME SOURCES... [LINK ...]): what a library that is LIGHT has for each number, picture or message, fully
# optimized: as objects, `ringlet_NAME_fast`, which the library has as well.
function(ringlet_fast name)
  ringlet_objects(${name}_fast ${ARGN})
endfunction()

function(ringlet_objects name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;ALONE" ${ARGN})
  add_library(ringlet_${name} OBJECT ${ARG_SOURCES})
  ringlet_unity(ringlet_${name} 40 ALONE ${ARG_ALONE})
  target_link_libraries(ringlet_${name} PUBLIC ringlet_build ${ARG_LINK})
  ringlet_parsed(ringlet_${name})
endfunction()

# ringlet_library(NAME SOURCES... [LIGHT] [LINK ...] [ALONE ...]): one room as a static library, `ringlet_NAME`; for those who
# build on Ringlet, here or installed, `ringlet::NAME`. LIGHT: compiled as the files of a light room are.
function(ringlet_library name)
  cmake_parse_arguments(ARG "LIGHT" "" "SOURCES;LINK;ALONE" ${ARGN})
  add_library(ringlet_${name} STATIC ${ARG_SOURCES})
  ringlet_unity(ringlet_${name} 40 ALONE ${ARG_ALONE})
  target_link_libraries(ringlet_${name} PUBLIC ringlet_build ${ARG_LINK})
  set_target_properties(ringlet_${name} PROPERTIES EXPORT_NAME ${name})
  foreach(part core fast)
    if(TARGET ringlet_${name}_${part})
      target_sources(ringlet_${name} PRIVATE $<TARGET_OBJECTS:ringlet_${name}_${part}>)
    endif()
  endforeach()
  if(ARG_LIGHT)
    ringlet_parsed(ringlet_${name} LIGHT)
  else()
    ringlet_parsed(ringlet_${name})
  endif()
  add_library(ringlet::${name} ALIAS ringlet_${name})
endfunction()

