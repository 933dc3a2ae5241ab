// What runs the compiled kernels in the preset `ptx`: that it computes as a GPU does, and what it
// finds wrong with a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/narrow_floats.h"
#include "tests/cuda_stand_in/ptx/block.h"
#include "tests/cuda_stand_in/ptx/launch.h"
#include "tests/cuda_stand_in/ptx/operations.h"
#include "tests/cuda_stand_in/ptx/program.h"
#include "tests/cuda_stand_in/ptx/text.h"

namespace ringlet::ptx {
namespace {

constexpr int kThreads = 64;

/// Runs a kernel of two parameters: the address of `data`, and its length. "" or the fault's words.
std::string fault_of(std::string_view body, std::vector<float>& data) {
  const Module module(
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_data,\n"
      ".param .align 8 .b8 k_more[8])\n.maxntid 64, 1, 1\n{\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n"
      ".reg .b32 %r<20>;\n.reg .f32 %f<20>;\n.reg .b64 %rd<20>;\n.reg .f64 %fd<9>;\n"
      ".shared .align 4 .b8 k_shared[256];\nld.param.u64 %rd1, [k_data];\n"
      "ld.param.u32 %r1, [k_more+4];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\n"
      "mad.lo.s32 %r4, %r3, 64, %r2;\nmul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
      "shl.b32 %r5, %r2, 2;\n" +
      std::string(body) + "\nret;\n}\n");
  const Program program = module.program("k");
  const auto begin = reinterpret_cast<std::uintptr_t>(data.data());
  Block block(program, kThreads, 0, [&](std::uintptr_t) {
    return Range{begin, begin + data.size() * sizeof(float)};
  });
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &begin, 8);
  const auto length = static_cast<std::uint32_t>(data.size());
  std::memcpy(parameters.data() + 12, &length, 4);
  const auto blocks = static_cast<std::uint32_t>((data.size() + kThreads - 1) / kThreads);
  try {
    for (std::uint32_t i = 0; i < blocks; ++i) block.run(i, blocks, parameters);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

std::string fault_of(std::string_view body) {
  std::vector<float> data(kThreads, 1);
  return fault_of(body, data);
}

// Thread i turns i times, so all part and meet again.
TEST(CudaPtx, ThreadsThatPartMeetAgain) {
  std::vector<float> data(2 * kThreads - 5, 0.5F);
  const std::string fault = fault_of(R"(
griddepcontrol.wait;
setp.ge.u32 %p1, %r4, %r1;
@%p1 bra $done;
ld.global.f32 %f1, [%rd3];
mov.u32 %r6, 0;
$again:
setp.ge.u32 %p2, %r6, %r4;
@%p2 bra $write;
add.rn.f32 %f1, %f1, 0f3F800000;
add.s32 %r6, %r6, 1;
bra.uni $again;
$write:
st.global.f32 [%rd3], %f1;
$done:
)",
                                     data);
  EXPECT_EQ(fault, "");
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], 0.5F + static_cast<float>(i));
}

TEST(CudaPtx, SharedMemoryIsThereBehindABarrier) {
  std::vector<float> data(kThreads);
  for (int i = 0; i < kThreads; ++i) data[static_cast<std::size_t>(i)] = static_cast<float>(i);
  const std::string fault = fault_of(R"(
griddepcontrol.wait;
mov.u32 %r7, k_shared;
add.s32 %r8, %r7, %r5;
ld.global.f32 %f1, [%rd3];
st.shared.f32 [%r8], %f1;
bar.sync 0;
sub.s32 %r9, 252, %r5;
add.s32 %r9, %r9, %r7;
ld.shared.f32 %f2, [%r9];
st.global.f32 [%rd3], %f2;
)",
                                     data);
  EXPECT_EQ(fault, "");
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(data[static_cast<std::size_t>(i)], 63 - i);
}

TEST(CudaPtx, FindsWhatAGpuLeavesUnsaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"griddepcontrol.wait;\nld.global.f32 %f1, [%rd3+4];",
       "kernel k, block 0: thread 63 reads 4 bytes 256 bytes behind the begin of an allocation of "
       "256 bytes"},
      {"griddepcontrol.wait;\nst.global.v2.f32 [%rd1+252], {%f1, %f1};",
       "kernel k, block 0: thread 0 writes 8 bytes 252 bytes behind the begin of an allocation of "
       "256 bytes"},
      {"griddepcontrol.wait;\nld.global.v2.f32 {%f1, %f2}, [%rd1+4];", "which is no multiple of 8"},
      {"ld.global.f32 %f1, [%rd3];",
       "kernel k, block 0: thread 0 reads memory before it waited for the kernel before this one"},
      {"ld.shared.f32 %f1, [k_shared];",
       "kernel k, block 0: thread 0 reads shared byte 0, which nobody has written"},
      {"ld.shared.f32 %f1, [k_shared+256];", "thread 0 reads bytes 256 to 260 of 256 shared bytes"},
      {"st.shared.u32 [k_shared], %r2;",
       "kernel k, block 0: thread 1 writes shared byte 0, which thread 0 writes; no barrier is "
       "between"},
      {"st.shared.u32 [%r5], %r2;\nxor.b32 %r6, %r5, 4;\nld.shared.u32 %r7, [%r6];",
       "kernel k, block 0: thread 0 reads shared byte 4, which thread 1 writes; no barrier is "
       "between"},
      {"st.shared.u32 [%r5], %r2;\nbar.sync 0;\nxor.b32 %r6, %r5, 4;\nld.shared.u32 %r7, [%r6];\n"
       "st.shared.u32 [%r5], %r7;",
       "kernel k, block 0: thread 0 writes shared byte 0, which thread 1 reads; no barrier is "
       "between"},
      {"setp.lt.u32 %p1, %r2, 5;\n@%p1 bra $end;\nbar.sync 0;\n$end:",
       "kernel k, block 0: 5 threads have ended and never come to a barrier"},
      {"setp.lt.u32 %p1, %r2, 5;\n@%p1 bra $other;\nbar.sync 0;\nbra.uni $end;\n$other:\n"
       "bar.sync 0;\n$end:",
       "kernel k, block 0: threads of a block wait at two barriers"},
      {"ld.param.u64 %rd4, [k_more+4];", "reads 8 bytes at 12 of 16 bytes of parameters"},
  };
  for (const auto& [body, words] : cases) {
    EXPECT_TRUE(fault_of(body).ends_with(words)) << body << "\n" << fault_of(body);
  }
}

TEST(CudaPtx, WhatItDoesNotKnowIsAnError) {
  for (const char* body :
       {"add.rm.f32 %f1, %f1, %f2;", "call foo;", "st.local.u32 [%rd1], %r1;",
        "@%p1 add.s32 %r1, %r1, 1;", "shfl.sync.down.b32 %r1, %r2, %r3, %r4, %r5;",
        "cvt.rni.s32.f32 %r1, %f1;", "bra $nowhere;", "add.s32 %q1, %r1, %r2;"}) {
    EXPECT_THROW(fault_of(body), std::invalid_argument) << body;
  }
}

/// Sixteen threads copy four numbers each to shared memory, and `rest` follows.
std::string copying(std::string_view rest) {
  return std::string(R"(
griddepcontrol.wait;
mov.u32 %r6, k_shared;
shl.b32 %r7, %r2, 4;
add.s32 %r8, %r6, %r7;
mul.wide.u32 %rd4, %r2, 16;
add.s64 %rd5, %rd1, %rd4;
mov.u32 %r9, 16;
setp.ge.u32 %p1, %r2, 16;
@%p1 bra $copied;
cp.async.cg.shared.global [%r8], [%rd5], 16, %r9;
cp.async.commit_group;
$copied:
)") + std::string(rest) +
         R"(
add.s32 %r10, %r6, %r5;
ld.shared.f32 %f1, [%r10];
st.global.f32 [%rd3], %f1;
)";
}

TEST(CudaPtx, CopiesAreThereOnceTheyWereWaitedFor) {
  std::vector<float> data;
  for (int i = 0; i < kThreads; ++i) data.push_back(static_cast<float>(i));
  const std::vector<float> before = data;
  EXPECT_EQ(fault_of(copying("cp.async.wait_group 0;\nbar.sync 0;"), data), "");
  EXPECT_EQ(data, before);
  const auto fails = [](std::string_view rest, std::string_view words) {
    const std::string fault = fault_of(copying(rest));
    EXPECT_NE(fault.find(words), std::string::npos) << rest << ": " << fault;
  };
  fails("bar.sync 0;", "which a copy goes to that was not waited for");
  fails("cp.async.wait_group 1;\nbar.sync 0;", "which a copy goes to that was not waited for");
  fails("cp.async.wait_group 0;", "no barrier is between");
}

// a[m][k] = m + 1 where k is m, of f16; b[k][n] = k + 0.5 n. The product is (m + 1) b[m][n].
TEST(CudaPtx, AWarpMultipliesMatrices) {
  Program program;
  std::array<Row, 14> rows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {4, static_cast<int>(4 * i)};
  program.row_bytes = 4 * static_cast<int>(rows.size());
  Instruction at{.run = multiply_matrices(false)};
  std::copy_n(rows.begin(), 10, at.from.begin());
  std::copy_n(rows.begin() + 10, 4, at.to.begin());
  program.instructions = {at, {.flow = Flow::end}};
  Block block(program, 32, 0, [](std::uintptr_t) { return Range{}; });
  const auto pair = [](float low, float high) {
    return to_half(low).bits | std::uint32_t{to_half(high).bits} << 16U;
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, k = lane % 4 * 2;
    for (int e = 0; e < 4; ++e) {
      const int m = group + e % 2 * 8, first = k + e / 2 * 8;
      const auto a = [&](int column) { return m == column ? static_cast<float>(m + 1) : 0.0F; };
      block.row<std::uint32_t>(rows[e])[lane] = pair(a(first), a(first + 1));
      block.row<float>(rows[6 + e])[lane] = 100;
    }
    for (int e = 0; e < 2; ++e) {
      const auto b = [&](int row) { return static_cast<float>(row) + 0.5F * group; };
      block.row<std::uint32_t>(rows[4 + e])[lane] = pair(b(k + e * 8), b(k + e * 8 + 1));
    }
  }
  block.run(0, 1, {});
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 4; ++e) {
      const int m = lane / 4 + e / 2 * 8, n = lane % 4 * 2 + e % 2;
      EXPECT_EQ(block.row<float>(rows[10 + e])[lane], 100 + (m + 1) * (m + 0.5F * n));
    }
  }
}

/// Bits of what an instruction makes of up to three values of so many bits.
template <class To, class From>
std::uint64_t computed(std::string_view opcode, std::initializer_list<From> values) {
  Program program;
  const Row to{sizeof(To), 24};
  program.row_bytes = 32;
  Instruction at{.to = {to}};
  int before = 0;
  for (std::size_t i = 0; i < values.size(); ++i, before += 8) {
    at.from[i] = {sizeof(From), before};
    std::uint64_t bits = 0;
    std::memcpy(&bits, values.begin() + i, sizeof(From));
    program.constants.push_back({at.from[i], bits});
  }
  at.run = arithmetic(parts_of(opcode), sizeof(To), sizeof(From));
  if (at.run == nullptr) return ~std::uint64_t{0};
  program.instructions = {at, {.flow = Flow::end}};
  Block block(program, 1, 0, [](std::uintptr_t) { return Range{}; });
  block.run(0, 1, {});
  std::uint64_t bits = 0;
  std::memcpy(&bits, block.row<To>(to), sizeof(To));
  return bits;
}

std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// By the rules of NVIDIA's description of PTX.
TEST(CudaPtx, ComputesByTheRules) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  using I32 = std::int32_t;
  using I64 = std::int64_t;
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  EXPECT_EQ((computed<U32, U32>("shl.b32", {1, 31})), 0x80000000U);
  EXPECT_EQ((computed<U32, U32>("shl.b32", {1, 32})), 0U);
  EXPECT_EQ((computed<I32, I32>("shr.s32", {-8, 40})), 0xFFFFFFFFU);
  EXPECT_EQ((computed<U32, U32>("shr.u32", {8, 40})), 0U);
  EXPECT_EQ((computed<I64, I32>("mul.wide.s32", {-3, 5})), static_cast<U64>(-15));
  EXPECT_EQ((computed<U64, U32>("mul.wide.u32", {0xFFFFFFFF, 2})), 0x1FFFFFFFEU);
  EXPECT_EQ((computed<I32, I32>("mul.hi.s32", {-3, 5})), 0xFFFFFFFFU);
  EXPECT_EQ((computed<U32, U32>("mul.hi.u32", {0x80000000, 6})), 3U);
  EXPECT_EQ((computed<I32, I32>("mad.lo.s32", {-3, 5, 7})), static_cast<U32>(-8));
  EXPECT_EQ((computed<I64, I32>("cvt.s64.s32", {-2})), static_cast<U64>(-2));
  EXPECT_EQ((computed<I64, I64>("cvt.s64.s32", {0x1FFFFFFFE})), static_cast<U64>(-2));
  EXPECT_EQ((computed<U32, U64>("cvt.u32.u64", {0x500000007})), 7U);
  EXPECT_EQ((computed<I64, float>("cvt.rzi.s64.f32", {-2.75F})), static_cast<U64>(-2));
  EXPECT_EQ((computed<I64, float>("cvt.rzi.s64.f32", {nan})), 0U);
  EXPECT_EQ((computed<I64, float>("cvt.rzi.s64.f32", {1e30F})), 0x7FFFFFFFFFFFFFFFU);
  EXPECT_EQ((computed<float, float>("cvt.sat.f32.f32", {nan})), bits(0));
  EXPECT_EQ((computed<U16, float>("cvt.rn.bf16.f32", {1 + 0x1p-8F})), 0x3F80U);  // to even
  EXPECT_EQ((computed<U16, float>("cvt.rn.bf16.f32", {1 + 0x1.8p-7F})), 0x3F82U);
  EXPECT_EQ((computed<U16, float>("cvt.rn.bf16.f32", {-nan})), 0x7FFFU);
  EXPECT_EQ((computed<U16, float>("cvt.rn.f16.f32", {65520})), 0x7C00U);
  EXPECT_EQ((computed<U16, float>("cvt.rn.f16.f32", {nan})), 0x7FFFU);
  EXPECT_EQ((computed<float, U16>("cvt.f32.f16", {0x0001})), bits(0x1p-24F));
  EXPECT_EQ((computed<float, U32>("cvt.rn.f32.u32", {0xFFFFFFFF})), bits(0x1p32F));
  EXPECT_EQ((computed<float, float>("min.f32", {nan, 2})), bits(2));
  EXPECT_EQ((computed<float, float>("max.f32", {2, nan})), bits(2));
  EXPECT_EQ((computed<float, float>("fma.rn.f32", {1 + 0x1p-12F, 1 - 0x1p-12F, -1})),
            bits(-0x1p-24F));
  EXPECT_EQ((computed<float, float>("fma.rm.f32", {1, 1, -0x1p-30F})), bits(1 - 0x1p-24F));
  EXPECT_EQ((computed<float, float>("add.rz.f32", {1, -0x1p-30F})), bits(1 - 0x1p-24F));
  EXPECT_EQ((computed<float, float>("copysign.f32", {-1, 3})), bits(-3));
  EXPECT_EQ((computed<float, float>("div.rn.f32", {1, 0})), bits(inf));
  EXPECT_EQ((computed<float, float>("ex2.approx.ftz.f32", {-140})), bits(0));
  EXPECT_EQ((computed<std::uint8_t, float>("setp.lt.f32", {nan, 1})), 0U);
  EXPECT_EQ((computed<std::uint8_t, float>("setp.ltu.f32", {nan, 1})), 1U);
  EXPECT_EQ((computed<std::uint8_t, float>("setp.ne.f32", {nan, 1})), 0U);
  EXPECT_EQ((computed<std::uint8_t, float>("setp.neu.f32", {nan, 1})), 1U);
  EXPECT_EQ((computed<std::uint8_t, float>("setp.num.f32", {nan, 1})), 0U);
  EXPECT_EQ((computed<std::uint8_t, float>("setp.nan.f32", {nan, 1})), 1U);
  EXPECT_EQ((computed<std::uint8_t, I32>("setp.lt.s32", {-1, 1})), 1U);
  EXPECT_EQ((computed<std::uint8_t, U32>("setp.lt.u32", {0xFFFFFFFF, 1})), 0U);
}

#ifdef RINGLET_STAND_IN_PTX
// Early launches (kernels/cuda/cuda_grid.cuh) rest on it: the next kernel may begin when all
// threads have allowed it, and none touches memory before the one before it has ended.
TEST(CudaCompiledKernels, WaitBeforeTheyTouchMemory) {
  const auto kernels = registered_kernels();
  EXPECT_GT(kernels.size(), 400U);
  for (const auto& [name, text] : kernels) {
    const std::size_t touched =  // or where threads part, and some might not wait
        std::min({text.find("ld.global"), text.find("st.global"), text.find("atom."),
                  text.find("bra"), text.size()});
    EXPECT_LT(text.find("griddepcontrol.launch_dependents"), touched) << name;
    EXPECT_LT(text.find("griddepcontrol.wait"), touched) << name;
  }
}

// No calls, no local memory, no votes between threads of a warp: program_of() would not know them.
TEST(CudaCompiledKernels, HaveInstructionsThatAreKnown) {
  for (const auto& [name, text] : registered_kernels()) EXPECT_NO_THROW(program_of(name)) << name;
}
#endif

}  // namespace
}  // namespace ringlet::ptx
