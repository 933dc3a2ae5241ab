// libringlet_mpi.so: the one part of Ringlet that is linked with MPI (mpi_module.h).
#include "comm/transport/mpi/mpi_module.h"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace ringlet::comm {

struct MpiRequest {
  MPI_Request request = MPI_REQUEST_NULL;
};

namespace {

MPI_Comm world = MPI_COMM_NULL;
bool has_begun = false;  // MPI, here
MpiReduce reduce_elements = nullptr;

/// Null for success.
const char* error_of(int code) {
  if (code == MPI_SUCCESS) return nullptr;
  thread_local std::array<char, MPI_MAX_ERROR_STRING + 1> text;
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text[static_cast<std::size_t>(length)] = '\0';
  return text.data();
}

/// An operation on elements of sixteen bits, which MPI does not know: it is the kernels'.
template <int kDType, int kOp>
void reduce_sixteen_bits(void* theirs, void* data, int* count, MPI_Datatype* /*type*/) {
  reduce_elements(kDType, kOp, theirs, data, *count);
}

constexpr int kTypes = 8, kOps = 4;
using Operations = std::array<MPI_Op, kTypes * kOps>;

template <int... kIndex>
Operations make_operations(std::integer_sequence<int, kIndex...>) {
  Operations operations{};
  (MPI_Op_create(reduce_sixteen_bits<kIndex / kOps, kIndex % kOps>, 1, &operations[kIndex]), ...);
  return operations;
}

struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
};

Reduction reduction_of(int dtype, int op, char is_number, char operation) {
  if (is_number != 0) {
    const MPI_Op known = operation == '+' ? MPI_SUM : operation == '<' ? MPI_MIN : MPI_MAX;
    return {is_number == 'f' ? MPI_FLOAT : MPI_INT32_T, known};
  }
  static const Operations operations =
      make_operations(std::make_integer_sequence<int, kTypes * kOps>());
  return {MPI_UINT16_T, operations[static_cast<std::size_t>(dtype * kOps + op)]};
}

const char* open(int* rank, int* size, MpiReduce reduce) {
  reduce_elements = reduce;
  int begun = 0, level = 0;
  MPI_Initialized(&begun);
  if (begun == 0) {
    if (const char* error =
            error_of(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level))) {
      return error;
    }
    has_begun = true;
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) return "it has no MPI_THREAD_MULTIPLE";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  return nullptr;
}

const char* join() {
  if (const char* error = error_of(MPI_Comm_dup(MPI_COMM_WORLD, &world))) return error;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  return nullptr;
}

void close() {
  if (world != MPI_COMM_NULL) MPI_Comm_free(&world);
  if (has_begun) MPI_Finalize();
}

/// Calls begin(&request), and makes a request of ours if it could.
template <class Begin>
const char* begin(MpiRequest** request, Begin begin) {
  auto made = new MpiRequest;
  const char* error = error_of(begin(&made->request));
  if (error != nullptr) {
    delete made;
    made = nullptr;
  }
  *request = made;
  return error;
}

const char* send(const void* data, std::int64_t bytes, int to, int tag, MpiRequest** request) {
  return begin(request, [=](MPI_Request* made) {
    return MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, world, made);
  });
}

const char* receive(void* data, std::int64_t bytes, int from, int tag, MpiRequest** request) {
  return begin(request, [=](MPI_Request* made) {
    return MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, world, made);
  });
}

const char* all_reduce(void* data, std::int64_t count, int dtype, int op, char is_number,
                       char operation, MpiRequest** request) {
  const Reduction by = reduction_of(dtype, op, is_number, operation);
  return begin(request, [=](MPI_Request* made) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), by.type, by.op, world, made);
  });
}

const char* reduce(void* data, std::int64_t count, int dtype, int op, char is_number,
                   char operation, MpiRequest** request) {
  const Reduction by = reduction_of(dtype, op, is_number, operation);
  int rank = 0;
  MPI_Comm_rank(world, &rank);
  return begin(request, [=](MPI_Request* made) {
    return MPI_Ireduce(rank == 0 ? MPI_IN_PLACE : data, data, static_cast<int>(count), by.type,
                       by.op, 0, world, made);
  });
}

const char* broadcast(void* data, std::int64_t bytes, MpiRequest** request) {
  return begin(request, [=](MPI_Request* made) {
    return MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, 0, world, made);
  });
}

const char* test(MpiRequest* request, int* done) {
  const char* error = error_of(MPI_Test(&request->request, done, MPI_STATUS_IGNORE));
  if (error != nullptr || *done != 0) delete request;
  return error;
}

void abandon(MpiRequest* request) {
  delete request;  // MPI's own stays: to cancel it may wait for a process that is gone
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const MpiModule* ringlet_mpi_module() {
  static const MpiModule module{MpiModule::kVersion, open,   join,      close, send,   receive,
                                all_reduce,          reduce, broadcast, test,  abandon};
  return &module;
}

}  // namespace ringlet::comm
