# Cross-compiles for aarch64 on another Debian or Ubuntu: a toolchain file, which scripts/arm gives to CMake.
#
#   RINGLET_ARM_SYSROOT    the folder of aarch64's libraries (scripts/arm unpacks them there)
#   RINGLET_ARM_EMULATOR   runs its programs here, for tests; default qemu-aarch64-static
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGLET_ARM_SYSROOT RINGLET_ARM_EMULATOR)

set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_SYSROOT ${RINGLET_ARM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${RINGLET_ARM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # protoc runs here
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# mpicxx is this machine's, and names this machine's folders.
set(MPI_SKIP_COMPILER_WRAPPER ON)
set(ENV{PKG_CONFIG_LIBDIR} ${RINGLET_ARM_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RINGLET_ARM_SYSROOT})

# Libraries that libraries need lie in folders of their own, too.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${RINGLET_ARM_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

if(NOT RINGLET_ARM_EMULATOR)
  set(RINGLET_ARM_EMULATOR qemu-aarch64-static)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR ${RINGLET_ARM_EMULATOR} -L ${RINGLET_ARM_SYSROOT})
