#include "kernels/meta_device.h"

namespace ringlet {

void* MetaDevice::do_allocate(std::int64_t bytes) {
  const auto rounded = (static_cast<std::uintptr_t>(bytes) + 511) / 256 * 256;
  return reinterpret_cast<void*>(next_.fetch_add(rounded));  // NOLINT: never dereferenced
}

}  // namespace ringlet
