#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace ringlet {

bool opens_libraries() { return true; }

SharedLibrary::SharedLibrary(const char* file, const char* remedy)
    : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own
    throw DeviceError(std::string("cannot open ") + (why == nullptr ? file : why) + "; " + remedy);
  }
}

void* SharedLibrary::find_address(const char* name) const { return dlsym(handle_, name); }

void* SharedLibrary::address_of(const char* name) const {
  void* address = find_address(name);
  if (address == nullptr) {
    throw DeviceError(
        file_ + " has no function " + name +
        ": it is older than the header that Ringlet was built with; install that version");
  }
  return address;
}

}  // namespace ringlet
