// Prints each operation's results of equal inputs, bit by bit, in both layouts of the CPU:
//
//   operation_bits
//
//   lanes/relu/0 <tab> 3f80000a bf000000 ...     result 0 of relu, its numbers in logical order
//
// scripts/arm compares what it prints on two processors. Inputs come from integers by exact steps,
// so that they are the same everywhere.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "kernels/adamw.h"
#include "kernels/device.h"
#include "kernels/reduce.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"
#include "tests/kernels/operation_calls.h"

namespace ringlet::test {
namespace {

/// Forward, both gradients, and what they add to.
void convolve(Call& c, const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y) {
  conv2d_forward(c.stream(), spec, c.in(x, 1), c.filter(w, 2), c.f32({w[0]}, 3), Activation::relu,
                 c.out(y, 4));
  conv2d_backward_data(c.stream(), spec, c.filter(w, 2), c.in(y, 3), 1, c.out(x, 5));
  conv2d_backward_filter(c.stream(), spec, c.in(x, 1), c.in(y, 3), 0, c.filter_gradient(w, 6));
}

std::vector<Operation> further() {
  return {
      {"conv2d of 32 channels, 3 x 3",
       [](Call& c) {
         convolve(c, kPadded, {16, 32, 12, 12}, {32, 32, 3, 3}, {16, 32, 12, 12});
       }},
      {"conv2d of 32 channels, stride 2",
       [](Call& c) {
         convolve(c, {.stride = {2, 2}, .padding = {1, 1}}, {16, 32, 12, 12}, {32, 32, 3, 3},
                  {16, 32, 6, 6});
       }},
      {"linear of 400 inputs",
       [](Call& c) {
         const View x = c.in({64, 400}, 1), w = c.weight({120, 400}, 2), dy = c.in({64, 120}, 3);
         linear_forward(c.stream(), x, w, c.f32({120}, 4), Activation::relu, c.out({64, 120}, 5));
         linear_backward_data(c.stream(), w, dy, 0, c.out({64, 400}, 6));
         linear_backward_weight(c.stream(), x, dy, 0, c.f32_out({120, 400}, 7));
       }},
  };
}

/// Those that know no layout.
std::vector<Operation> flat() {
  return {
      {"softmax_cross_entropy",
       [](Call& c) {
         const View labels = c.other({18}, DType::i32, Layout::nchw), p = c.f32_out({18, 10}, 2);
         write(labels, random_labels(18, 3, 10));
         softmax_cross_entropy_forward(c.stream(), c.f32({18, 10}, 1), labels, p, c.f32_out({1}, 4),
                                       0.1F);
         softmax_cross_entropy_backward(c.stream(), p, labels, c.f32({1}, 5), 0,
                                        c.f32_out({18, 10}, 6), 0.1F);
       }},
      {"sgd_update",
       [](Call& c) {
         sgd_update(c.stream(), {.weight_decay = 5e-4F}, c.f32({2}, 1), c.f32_out({1000}, 2),
                    c.f32({1000}, 3), c.f32_out({1000}, 4));
       }},
      {"adamw_update",
       [](Call& c) {
         const View square = c.f32_out({1000}, 4);
         relu_forward(c.stream(), square, square);
         adamw_update(c.stream(), {}, c.f32({4}, 1), c.f32_out({1000}, 2), c.f32({1000}, 3),
                      c.f32_out({1000}, 5), square);
       }},
      {"reduce",
       [](Call& c) {
         const ConstView xs[] = {c.f32({1000}, 1), c.f32({1000}, 2), c.f32({1000}, 3)};
         const View ys[] = {c.f32_out({1000}, 4)};
         reduce(c.stream(), ReduceOp::mean, xs, ys);
       }},
  };
}

void print(const std::string& name, const Call& call) {
  std::vector<std::size_t> order(call.results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&call](std::size_t a, std::size_t b) { return call.seeds[a] < call.seeds[b]; });
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    std::printf("%s/%zu\t", name.c_str(), place);
    for (const float number : read<float>(call.results[i])) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      std::printf("%08x ", bits);
    }
    std::printf("\n");
  }
}

void print_all() {
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  for (const Layout layout : {Layout::lanes, Layout::nchw}) {
    std::vector<Operation> all = operations();
    const auto append = [&all](const std::vector<Operation>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(further());
    if (layout == Layout::nchw) append(flat());
    for (const Operation& operation : all) {
      if (!(layout == Layout::lanes ? operation.lanes : operation.nchw)) continue;
      Call call(*device, layout, DType::f32, DType::f32);
      operation.call(call);
      device->compute().synchronize();
      print(std::string(name_of(layout)) + "/" + operation.name, call);
    }
  }
}

}  // namespace
}  // namespace ringlet::test

int main() { ringlet::test::print_all(); }
