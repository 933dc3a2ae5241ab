// The run time's errors, devices and notes.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

std::recursive_mutex mutex;
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

namespace {

std::mutex leaf;  // of what is below; whoever holds it calls nothing
std::vector<std::string> notes;
std::set<int> with_context;  // of them, since they were taken
std::string why_broken;
std::set<std::pair<int, int>> enabled;                     // peer access
thread_local std::pair<cudaError_t, std::string> refused;  // the latest

int device_count() {
  const char* said = std::getenv("RINGLET_STAND_IN_GPUS");
  return said == nullptr ? 1 : std::atoi(said);
}

}  // namespace

cudaError_t refuse(cudaError_t error, const std::string& why) {
  refused = {error, why};
  return failed(error);
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

std::set<int> reach_of(int gpu) {
  const std::lock_guard lock(leaf);
  std::set<int> reached{gpu};
  for (const auto& [from, to] : enabled) {
    if (from == gpu) reached.insert(to);
  }
  return reached;
}

bool is_broken() {
  const std::lock_guard lock(leaf);
  return !why_broken.empty();
}

void break_devices(const std::string& why) {
  const std::lock_guard lock(leaf);
  if (!why_broken.empty()) return;
  why_broken = why;
  std::fprintf(stderr, "stand-in: %s\n", why.c_str());
}

void note(std::string call) {
  const std::lock_guard lock(leaf);
  notes.push_back(std::move(call));
}

void note_context() {
  const std::lock_guard lock(leaf);
  if (with_context.insert(current_device).second) {
    notes.push_back("context " + std::to_string(current_device));
  }
}

std::vector<std::string> take_notes() {
  const std::lock_guard lock(leaf);
  with_context.clear();
  return std::exchange(notes, {});
}

float relu(float x) {
  const bool loses_nan = std::getenv("RINGLET_STAND_IN_RELU") != nullptr;
  return loses_nan ? (x > 0 ? x : 0) : (x < 0 ? 0 : x);
}

bool has_fault(const char* name) {
  const char* const said = std::getenv("RINGLET_STAND_IN_FAULT");
  return said != nullptr && std::strcmp(said, name) == 0;
}

namespace {

/// Tens and ones, of compute capability 9.0 where the variable is not set.
int capability_in(const char* variable) {
  const char* const said = std::getenv(variable);
  return said == nullptr ? 90 : std::atoi(said);
}

int capability() { return capability_in("RINGLET_STAND_IN_CAPABILITY"); }

}  // namespace

int ptx_version() { return capability_in("RINGLET_STAND_IN_PTX"); }

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

cudaError_t cudaGetLastError() {
  return is_broken() ? cudaErrorIllegalAddress : std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return is_broken() ? cudaErrorIllegalAddress : last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidPtx:
      return "cudaErrorInvalidPtx";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "an error of the stand-in";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return why_broken.c_str();
  return error == refused.first ? refused.second.c_str() : cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  current_device = device;
  note_context();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::strncpy(properties->name, "stand-in on the CPU", sizeof properties->name - 1);
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->major = capability() / 10;
  properties->minor = capability() % 10;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = memory_of_a_gpu();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  if (attribute == cudaDevAttrMultiProcessorCount) {
    *value = 4;
  } else if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = capability() / 10;
  } else if (attribute == cudaDevAttrComputeCapabilityMinor) {
    *value = capability() % 10;
  } else {
    return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* possible, int device, int other) {
  if (!is_device(device) || !is_device(other)) return failed(cudaErrorInvalidDevice);
  *possible = device != other;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned) {
  if (!is_device(other) || other == current_device) return failed(cudaErrorInvalidDevice);
  note("peer access " + std::to_string(current_device) + " " + std::to_string(other));
  const std::lock_guard lock(leaf);
  const bool is_new = enabled.emplace(current_device, other).second;
  return is_new ? cudaSuccess : failed(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int other) {
  const std::lock_guard lock(leaf);
  const bool was = enabled.erase({current_device, other}) == 1;
  return was ? cudaSuccess : failed(cudaErrorPeerAccessNotEnabled);
}

}  // extern "C"
