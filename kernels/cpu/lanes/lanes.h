// The CPU's kernels for the layout `lanes`: sixteen samples side by side in a vector register.
//
// Everything is a plain vector loop, whatever the number of channels: no image is reshaped, no
// channel is padded. Signatures and meaning are those of kernels/conv2d.h, pool2d.h, linear.h,
// bias.h and conv2d_relu_avg_pool2d.h; the public functions there have checked the contracts.
//
//   conv2d.cc and the like   build tap lists, pack weights, split the work over threads
//   arguments.h              what a vector kernel is told
//   gather.h, filter.h ...   the vector kernels, templates over the instruction set (cpu/simd)
//   kernel_table.cc          one instance of all of them for each instruction set, in a KernelTable
//
// Whole blocks of sixteen are computed: lanes beyond N hold finite numbers, and zero gradients.
// Work is split over outputs only, and the order of every sum depends on shapes and instruction set
// alone, so no bit depends on the number of threads.
#pragma once

#include "base/instruction_set.h"
#include "kernels/activation.h"
#include "kernels/conv2d.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/kernel_table.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::lanes {

/// The vector kernels of an instruction set.
inline const KernelTable& kernels_for(InstructionSet isa) {
  return for_instruction_set(isa, [](auto set) -> const KernelTable& { return kernels_of(set); });
}

void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                    ConstView bias, Activation activation, View y);
void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                          float beta, View dx);
void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                            float beta, View dw);

void avg_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, ConstView x, View y);
void avg_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, ConstView dy, float beta,
                         View dx);
void max_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, ConstView x, View y,
                        View winner);
void max_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, ConstView dy, ConstView winner,
                         float beta, View dx);

void linear_forward(CpuStream& stream, ConstView x, ConstView w, ConstView bias,
                    Activation activation, View y);
void linear_backward_data(CpuStream& stream, ConstView w, ConstView dy, float beta, View dx);
void linear_backward_weight(CpuStream& stream, ConstView x, ConstView dy, float beta, View dw);

void bias_forward(CpuStream& stream, ConstView x, ConstView b, View y);
void bias_backward(CpuStream& stream, ConstView dy, float beta, View db);

void conv2d_relu_avg_pool2d_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x,
                                    ConstView w, ConstView bias, View y, View mask);
void conv2d_relu_avg_pool2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w,
                                          ConstView dy, ConstView mask, float beta, View dx);
void conv2d_relu_avg_pool2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x,
                                            ConstView dy, ConstView mask, float beta_dw, View dw,
                                            float beta_db, View db);

}  // namespace ringlet::lanes
