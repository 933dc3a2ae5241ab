# The instruction sets that code on the CPU has versions for, and of each the compiler's options and
# the tag in base/instruction_set.h.
set(RINGLET_X86 FALSE)
set(RINGLET_ARM FALSE)
set(RINGLET_INSTRUCTION_SETS portable)
include(CheckCXXSourceCompiles)  # what the compiler says, as kX86 and kArm in that header
check_cxx_source_compiles("#ifndef __x86_64__\n#error\n#endif\nint main() {}" RINGLET_COMPILES_FOR_X86)
if(RINGLET_COMPILES_FOR_X86)
  set(RINGLET_X86 TRUE)
  list(APPEND RINGLET_INSTRUCTION_SETS avx2 avx512)
else()
  check_cxx_source_compiles("#ifndef __aarch64__\n#error\n#endif\nint main() {}" RINGLET_COMPILES_FOR_ARM)
  if(RINGLET_COMPILES_FOR_ARM)
    set(RINGLET_ARM TRUE)
    list(APPEND RINGLET_INSTRUCTION_SETS neon)
    # Every aarch64 fuses products with sums, and the compiler would wherever it can. What x86-64 computes without, ARM shall.
    string(APPEND CMAKE_CXX_FLAGS " -ffp-contract=off")
  endif()
endif()
set(RINGLET_TAG_portable PortableSet)
set(RINGLET_TAG_neon NeonSet)
set(RINGLET_TAG_avx2 Avx2Set)
set(RINGLET_TAG_avx512 Avx512Set)
set(RINGLET_OPTIONS_portable "")
if(RINGLET_ARM)
  set(RINGLET_OPTIONS_portable -ffp-contract=off)
endif()
set(RINGLET_OPTIONS_neon -ffp-contract=fast)  # as the compiler does where -mfma allows it
set(RINGLET_OPTIONS_avx2 -mavx2 -mfma)
set(RINGLET_OPTIONS_avx512 -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mavx2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # From g++ 14 on it rounds some products before it adds them to sums, and the same products of bf16 not.
  foreach(set neon avx2 avx512)
    list(APPEND RINGLET_OPTIONS_${set} --param=avoid-fma-max-bits=0)
  endforeach()
endif()

# The set's struct of vectors, in kernels/cpu/simd.
set(RINGLET_SIMD_portable Portable)
if(RINGLET_X86)
  set(RINGLET_SIMD_portable Sse2)
endif()
set(RINGLET_SIMD_neon Neon)
set(RINGLET_SIMD_avx2 Avx2)
set(RINGLET_SIMD_avx512 Avx512)

# ringlet_versions(name SOURCES ... OPTIONS ...): the sources once for each set, as object libraries name_SET.
function(ringlet_versions name)
  cmake_parse_arguments(versions "" "" "SOURCES;OPTIONS" ${ARGN})
  foreach(set IN LISTS RINGLET_INSTRUCTION_SETS)
    string(TOLOWER ${RINGLET_SIMD_${set}} header)
    add_library(${name}_${set} OBJECT ${versions_SOURCES})
    target_compile_definitions(${name}_${set} PRIVATE
      RINGLET_SET=${RINGLET_TAG_${set}}
      RINGLET_SIMD=simd::${RINGLET_SIMD_${set}}
      RINGLET_SIMD_HEADER="kernels/cpu/simd/${header}.h")
    target_compile_options(${name}_${set} PRIVATE ${versions_OPTIONS} ${RINGLET_OPTIONS_${set}})
    target_link_libraries(${name}_${set} PUBLIC ringlet_build)
  endforeach()
endfunction()

# ringlet_versions_of(variable names...): those libraries.
function(ringlet_versions_of variable)
  foreach(name IN LISTS ARGN)
    list(TRANSFORM RINGLET_INSTRUCTION_SETS PREPEND ${name}_ OUTPUT_VARIABLE its)
    list(APPEND all ${its})
  endforeach()
  set(${variable} ${all} PARENT_SCOPE)
endfunction()
