// What nvcc's host code calls of the run time: kernels are registered as they were compiled, and a
// launch puts them on the stand-in's stream, where their PTX is run.
#include "tests/cuda_stand_in/ptx/launch.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/ptx/block.h"
#include "tests/cuda_stand_in/ptx/program.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet::ptx {

namespace {

struct Kernel {
  const Module* module = nullptr;
  std::string name;
  std::optional<Program> program;  // once it is launched
  // By the number of threads, and the shared bytes that the launch gives.
  std::map<std::pair<int, int>, Block> blocks;
  int most_shared = 48 << 10;  // that a launch may give
};

std::mutex mutex;
// Never destroyed: objects that end later may launch until then.
auto& modules = *new std::deque<Module>();
auto& kernels = *new std::map<const void*, Kernel>();  // by the host's function

/// The first PTX in a fat binary: pieces with headers, as nvcc writes them with -no-compress.
std::string ptx_in(const std::byte* binary) {
  struct Head {
    std::uint32_t magic;
    std::uint16_t version, bytes;
    std::uint64_t rest;
  };
  struct Piece {
    std::uint16_t kind, version;
    std::uint32_t head_bytes;
    std::uint64_t bytes;
  };
  constexpr std::uint32_t kMagic = 0xBA55ED50;
  constexpr std::uint16_t kPtx = 1;
  Head head;
  std::memcpy(&head, binary, sizeof head);
  if (head.magic != kMagic) return {};
  for (std::uint64_t at = head.bytes; at < head.bytes + head.rest;) {
    Piece piece;
    std::memcpy(&piece, binary + at, sizeof piece);
    const char* text = reinterpret_cast<const char*>(binary + at + piece.head_bytes);
    if (piece.kind == kPtx) return {text, strnlen(text, piece.bytes)};
    at += piece.head_bytes + piece.bytes;
  }
  return {};
}

struct Launch {
  Kernel* kernel = nullptr;
  std::uint32_t blocks = 0;
  int threads = 0, shared_bytes = 0;
  std::vector<std::byte> parameters{};
  std::uint64_t number = 0;
};

Block& block_of(const Launch& launch) {
  const auto range_of = [](std::uintptr_t address) {
    const auto [begin, end] = stand_in::memory_at(address);
    return Range{begin, end};
  };
  return launch.kernel->blocks
      .try_emplace({launch.threads, launch.shared_bytes}, *launch.kernel->program, launch.threads,
                   launch.shared_bytes, range_of)
      .first->second;
}

/// Other launches, of another lane of a graph, may come between two blocks.
void run(const Launch& launch) {
  try {
    // No result may depend on which block is first: every other launch begins with the last.
    for (std::uint32_t i = 0; i < launch.blocks; ++i) {
      if (i == launch.blocks / 2) stand_in::meet_other_lane();
      const std::lock_guard lock(mutex);
      block_of(launch).run(launch.number % 2 == 0 ? i : launch.blocks - 1 - i, launch.blocks,
                           launch.parameters);
    }
  } catch (const Fault& fault) {
    stand_in::break_devices(fault.what());
  }
}

bool is_early(const cudaLaunchConfig_t& config) {
  return std::any_of(config.attrs, config.attrs + config.numAttrs, [](const auto& attribute) {
    return attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization &&
           attribute.val.programmaticStreamSerializationAllowed != 0;
  });
}

bool is_possible(const cudaLaunchConfig_t& config, const Kernel& kernel) {
  constexpr unsigned kMostThreads = 1024;
  return config.gridDim.x > 0 && config.gridDim.y == 1 && config.gridDim.z == 1 &&
         config.blockDim.x > 0 && config.blockDim.x <= kMostThreads && config.blockDim.y == 1 &&
         config.blockDim.z == 1 &&
         config.dynamicSmemBytes <= static_cast<std::size_t>(kernel.most_shared);
}

/// Takes the arguments over, as a launch does.
cudaError_t prepare(const cudaLaunchConfig_t& config, const void* function, void** arguments,
                    Launch& made) {
  static std::uint64_t launches = 0;
  const std::lock_guard lock(mutex);
  const auto found = kernels.find(function);
  if (found == kernels.end()) return cudaErrorInvalidDeviceFunction;
  Kernel& kernel = found->second;
  if (!is_possible(config, kernel)) return cudaErrorInvalidConfiguration;
  try {
    if (!kernel.program) kernel.program = kernel.module->program(kernel.name);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stand-in: kernel {}: {}\n", kernel.name, error.what());
    return cudaErrorInvalidPtx;
  }
  made = {&kernel,
          config.gridDim.x,
          static_cast<int>(config.blockDim.x),
          static_cast<int>(config.dynamicSmemBytes),
          {},
          launches++};
  made.parameters.resize(static_cast<std::size_t>(kernel.program->parameter_bytes));
  for (std::size_t i = 0; i < kernel.program->parameters.size(); ++i) {
    const Parameter& parameter = kernel.program->parameters[i];
    std::memcpy(made.parameters.data() + parameter.offset, arguments[i],
                static_cast<std::size_t>(parameter.bytes));
  }
  return cudaSuccess;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> registered_kernels() {
  const std::lock_guard lock(mutex);
  std::vector<std::pair<std::string, std::string>> all;
  for (const Module& module : modules) {
    for (const std::string& name : module.names()) {
      all.emplace_back(name, module.text_of(name));
    }
  }
  return all;
}

Program program_of(const std::string& name) {
  const std::lock_guard lock(mutex);
  for (const Module& module : modules) {
    const std::vector<std::string> names = module.names();
    if (std::find(names.begin(), names.end(), name) != names.end()) return module.program(name);
  }
  throw std::out_of_range("no kernel " + name);
}

}  // namespace ringlet::ptx

using ringlet::ptx::kernels;
using ringlet::ptx::modules;

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): nvcc calls them so.
void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* binary;
    void* unused;
  };
  const std::lock_guard lock(ringlet::ptx::mutex);
  modules.emplace_back(ringlet::ptx::ptx_in(static_cast<const Wrapper*>(wrapper)->binary));
  return reinterpret_cast<void**>(&modules.back());
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** module, const char* host_function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(ringlet::ptx::mutex);
  ringlet::ptx::Kernel& kernel = kernels[host_function];
  kernel.module = reinterpret_cast<const ringlet::ptx::Module*>(module);
  kernel.name = name;
}

// Of stubs that nobody calls: Ringlet launches by cudaLaunchKernelExC.
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
unsigned __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) { return 1; }
// NOLINTEND(bugprone-reserved-identifier)

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  ringlet::ptx::Launch launch{};
  const cudaError_t error = ringlet::ptx::prepare(*config, function, arguments, launch);
  if (error != cudaSuccess) return error;
  ringlet::stand_in::enqueue(
      config->stream, "kernel", [launch] { ringlet::ptx::run(launch); },
      ringlet::ptx::is_early(*config) ? ringlet::stand_in::Kind::early_kernel
                                      : ringlet::stand_in::Kind::kernel);
  return cudaPeekAtLastError();
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  constexpr int kMost = 227 << 10;  // of compute capability 9.0
  const std::lock_guard lock(ringlet::ptx::mutex);
  const auto found = kernels.find(function);
  if (found == kernels.end()) return cudaErrorInvalidDeviceFunction;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorNotSupported;
  if (value < 0 || value > kMost) return cudaErrorInvalidValue;
  found->second.most_shared = value;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const std::lock_guard lock(ringlet::ptx::mutex);
  if (!kernels.contains(function)) return cudaErrorInvalidDeviceFunction;
  if (ringlet::stand_in::ptx_version() == 0) return cudaErrorNoKernelImageForDevice;
  *attributes = {};
  attributes->ptxVersion = ringlet::stand_in::ptx_version();
  return cudaSuccess;
}

}  // extern "C"
