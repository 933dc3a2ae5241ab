// The program behind planner.h: answers questions on its standard input by calling the real cuDNN,
// until its input ends.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/planner.h"
#include "tests/support/described_gpu.h"

namespace ringlet::stand_in {
namespace {

cudnnBackendDescriptor_t describe_gpu() {
  cudnnBackendDescriptor_t gpu = nullptr;
  const std::string json = test::json_of(test::kH100);
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &gpu);
  cudnnBackendSetAttribute(gpu, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                           std::ssize(json), json.data());
  if (cudnnBackendFinalize(gpu) == CUDNN_STATUS_SUCCESS) return gpu;
  std::fputs("planner: this cuDNN describes GPUs otherwise\n", stderr);
  _exit(1);
}

/// Replaces `values` by what goes back.
Answer answer(const Question& question, std::vector<char>& values) {
  static cudnnBackendDescriptor_t gpu = describe_gpu();
  const auto name = static_cast<cudnnBackendAttributeName_t>(question.name);
  const auto type = static_cast<cudnnBackendAttributeType_t>(question.type);
  Answer result;
  switch (question.call) {
    case Question::create:
      result.status = cudnnBackendCreateDescriptor(
          static_cast<cudnnBackendDescriptorType_t>(question.name), &result.twin);
      break;
    case Question::destroy:
      result.status = cudnnBackendDestroyDescriptor(question.twin);
      break;
    case Question::set:
      result.status =
          cudnnBackendSetAttribute(question.twin, name, type, question.count, values.data());
      break;
    case Question::get:
      result.status =
          cudnnBackendGetAttribute(question.twin, name, type, question.count, &result.count,
                                   values.empty() ? nullptr : values.data());
      return result;
    case Question::finalize:
      if (question.aimed != 0) {
        cudnnBackendSetAttribute(question.twin,
                                 static_cast<cudnnBackendAttributeName_t>(question.aimed),
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &gpu);
      }
      result.status = cudnnBackendFinalize(question.twin);
      break;
    case Question::explain:
      cudnnGetLastErrorString(values.data(), values.size());
      return result;
  }
  values.clear();
  return result;
}

void serve() {
  Question question;
  std::vector<char> values;
  while (std::fread(&question, sizeof question, 1, stdin) == 1) {
    values.resize(static_cast<std::size_t>(question.bytes));
    if (std::fread(values.data(), 1, values.size(), stdin) != values.size()) return;
    Answer back = answer(question, values);
    back.bytes = std::ssize(values);
    std::fwrite(&back, sizeof back, 1, stdout);
    std::fwrite(values.data(), 1, values.size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace ringlet::stand_in

int main() {
  ringlet::stand_in::serve();
  _exit(0);  // cuDNN's own end takes a while
}
