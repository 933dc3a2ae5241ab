# The instruction sets that code on the CPU has versions for, and of each the compiler's options and
# the tag in base/instruction_set.h.
set(RINGLET_X86 FALSE)
set(RINGLET_INSTRUCTION_SETS portable)
include(CheckCXXSourceCompiles)  # what the compiler says, as kX86 in that header
check_cxx_source_compiles("#ifndef __x86_64__\n#error\n#endif\nint main() {}" RINGLET_COMPILES_FOR_X86)
if(RINGLET_COMPILES_FOR_X86)
  set(RINGLET_X86 TRUE)
  list(APPEND RINGLET_INSTRUCTION_SETS avx2 avx512)
endif()
set(RINGLET_TAG_portable PortableSet)
set(RINGLET_TAG_avx2 Avx2Set)
set(RINGLET_TAG_avx512 Avx512Set)
set(RINGLET_OPTIONS_portable "")
set(RINGLET_OPTIONS_avx2 -mavx2 -mfma)
set(RINGLET_OPTIONS_avx512 -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mavx2)
