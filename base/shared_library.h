// SharedLibrary: a library that is opened when it is first needed.
//
// The GPU's libraries (cuBLASLt, cuDNN, NCCL) are several hundred MB. Linked in, they would have to
// be there, and be mapped, before a replica on the CPU or `ringlet --help` could start; opened
// late, they cost nothing until a GPU is used, and one that is missing is an error that says so.
#pragma once

#include <string>

namespace ringlet {

/// False in the program as one file (RINGLET_STATIC), where each SharedLibrary throws.
bool opens_libraries();

class SharedLibrary {
 public:
  /// Opens `file`, such as "libcudnn.so.9", from the program's own search path (what CMake found)
  /// or the system's. Throws DeviceError with `remedy` when it is not there.
  SharedLibrary(const char* file, const char* remedy);
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  /// The function `name`, of the type that the library's header declares. Throws DeviceError when
  /// the library has none: it is older than the header.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address_of(name));
  }
  /// The same, but null where the library has none.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(find_address(name));
  }

 private:
  void* address_of(const char* name) const;
  void* find_address(const char* name) const;

  std::string file_;
  void* handle_ = nullptr;  // never closed: such libraries keep threads and exit handlers
};

}  // namespace ringlet
