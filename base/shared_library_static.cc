// Instead of shared_library.cc in the program as one file (RINGLET_STATIC). A library would bring
// its own glibc, of another version.
#include "base/error.h"
#include "base/shared_library.h"

namespace ringlet {

bool opens_libraries() { return false; }

SharedLibrary::SharedLibrary(const char* file, const char* /*remedy*/) {
  throw DeviceError(std::string("cannot open ") + file +
                    ": the program as one file opens no libraries; install Ringlet's .deb");
}

void* SharedLibrary::find_address(const char* /*name*/) const { return nullptr; }

void* SharedLibrary::address_of(const char* /*name*/) const { return nullptr; }

}  // namespace ringlet
