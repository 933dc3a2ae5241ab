// What libringlet_mpi.so gives Ringlet, which opens it when --transport mpi asks for it. Only that
// module is linked with MPI: so Ringlet runs where MPI is not installed, and can be built where
// the module is not. Plain C types, since the two may come from different builds.
//
// Every function that returns const char* returns null, or what went wrong in MPI's words, which
// stay until the thread's next call. Any thread may call any function, except open(),
// join() and close(), which belong to one thread.
#pragma once

#include <cstdint>

namespace ringlet::comm {

/// A message or a collective under way.
struct MpiRequest;

/// data = op of data and theirs, `count` elements. `dtype` and `op`: numbers that all_reduce() got.
using MpiReduce = void (*)(int dtype, int op, const void* theirs, void* data, std::int64_t count);

struct MpiModule {
  static constexpr int kVersion = 2;
  int version;  ///< kVersion, of who built the module

  /// Begins MPI, if nobody has, and sends nothing. `reduce` serves the types that MPI lacks.
  const char* (*open)(int* rank, int* size, MpiReduce reduce);
  /// Takes a communicator of its own: collective, once MPI has begun in all processes.
  const char* (*join)();
  /// Ends MPI, where open() has begun it: collective. Not after an abort, when it would wait for
  /// the others.
  void (*close)();

  const char* (*send)(const void* data, std::int64_t bytes, int to, int tag, MpiRequest** request);
  const char* (*receive)(void* data, std::int64_t bytes, int from, int tag, MpiRequest** request);
  /// `element`: bytes of an element; `is_number`: 'f' for f32, 'i' for i32, 0 for other types.
  /// `op`: '+', '<' for the minimum, '>' for the maximum.
  const char* (*all_reduce)(void* data, std::int64_t count, int dtype, int op, char is_number,
                            char operation, MpiRequest** request);
  const char* (*reduce)(void* data, std::int64_t count, int dtype, int op, char is_number,
                        char operation, MpiRequest** request);
  const char* (*broadcast)(void* data, std::int64_t bytes, MpiRequest** request);
  /// Whether it is done; then, and after an error, the request is gone.
  const char* (*test)(MpiRequest* request, int* done);
  /// Lets go of a request that nobody waits for. Its memory stays MPI's until the process ends.
  void (*abandon)(MpiRequest* request);
};

/// The module's only symbol.
inline constexpr const char* kMpiModuleSymbol = "ringlet_mpi_module";
using GetMpiModule = const MpiModule*();

}  // namespace ringlet::comm
