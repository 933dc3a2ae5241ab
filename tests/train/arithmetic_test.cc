// Which processes compute the same last bits, and what to tell where they do not.
#include "train/telemetry/arithmetic.h"

#include <gtest/gtest.h>

#include <string>

#include "base/instruction_set.h"
#include "kernels/linear.h"

namespace ringlet::train {
namespace {

const Arithmetic kWide{.instruction_set = "avx512", .openblas = "SkylakeX"};
const Arithmetic kNarrow{.instruction_set = "avx2", .openblas = "Haswell"};

TEST(Arithmetic, IsWhatRunsHere) {
  const Execution on_processor{.devices = {DeviceId{}}};
  const Arithmetic here = arithmetic_here(on_processor, Precision::f32, "GNU 12.2.0");
  const std::string set = name_of(detect_instruction_set());
  EXPECT_EQ(here.instruction_set, kArm ? set + " on ARM" : set);
  EXPECT_EQ(here.openblas, product_kernels());
  EXPECT_FALSE(here.openblas.empty());
  EXPECT_EQ(here.bf16, "") << "nothing multiplies bf16";
  EXPECT_EQ(here.gpus, "");
  EXPECT_EQ(here.compiler, "GNU 12.2.0");
  EXPECT_NE(arithmetic_here(on_processor, Precision::bf16, "").bf16, "");
}

TEST(Arithmetic, GoesToOtherProcessesAndBack) {
  const Arithmetic gpus{.gpus = "NVIDIA H200, cuda:1"};
  for (const Arithmetic& one :
       {kWide, gpus, Arithmetic{"avx512", "SkylakeX", "amx", "", "GNU 12.2.0"}}) {
    EXPECT_EQ(arithmetic_of(to_text(one)), one);
  }
  EXPECT_EQ(arithmetic_of(""), Arithmetic{});
}

TEST(Arithmetic, UnlikeProcessesAreNamedWithWhatMakesThemAlike) {
  EXPECT_EQ(warning_of_unlike({kWide}), "");
  EXPECT_EQ(warning_of_unlike({kWide, kWide, kWide}), "");
  EXPECT_EQ(warning_of_unlike({kWide, kNarrow, kWide}),
            "--exact: this run's bytes may be no other run's, since its processes compute "
            "differently: processes 0 and 2 compute with avx512 and OpenBLAS's SkylakeX, process 1 "
            "computes with avx2 and OpenBLAS's Haswell; set RINGLET_ISA=avx2 "
            "OPENBLAS_CORETYPE=Haswell for all of them");
  // Only what OpenBLAS took differs, and it has names that are not known here.
  const Arithmetic newer{.instruction_set = "avx512", .openblas = "NewLake"};
  EXPECT_TRUE(warning_of_unlike({newer, kWide})
                  .ends_with("set RINGLET_ISA=avx512 OPENBLAS_CORETYPE=SkylakeX for all of them"));
  EXPECT_TRUE(warning_of_unlike({{.gpus = "NVIDIA H100"}, {.gpus = "NVIDIA H200"}})
                  .ends_with("process 0 computes with NVIDIA H100, process 1 computes with NVIDIA "
                             "H200; take equal GPUs for all of them"));
}

TEST(Arithmetic, CompilersAreNamedWhereTheyDiffer) {
  Arithmetic gnu = kWide, clang = kWide;
  gnu.compiler = "GNU 12.2.0";
  clang.compiler = "Clang 19.1.7";
  EXPECT_EQ(warning_of_unlike({gnu, gnu}), "");
  EXPECT_EQ(warning_of_unlike({gnu, clang}),
            "--exact: this run's bytes may be no other run's, since its processes compute "
            "differently: process 0 computes with avx512 and OpenBLAS's SkylakeX, compiled by GNU "
            "12.2.0, process 1 computes with avx512 and OpenBLAS's SkylakeX, compiled by Clang "
            "19.1.7; take the same build of ringlet for all of them");
  Arithmetic narrow = kNarrow;
  narrow.compiler = clang.compiler;
  EXPECT_TRUE(warning_of_unlike({gnu, narrow})
                  .ends_with("take the same build of ringlet and set RINGLET_ISA=avx2 "
                             "OPENBLAS_CORETYPE=Haswell for all of them"));
  EXPECT_EQ(warning_of_unlike({clang, narrow}).find("compiled"), std::string::npos);

  EXPECT_EQ(warning_of_change(gnu, gnu), "");
  EXPECT_EQ(warning_of_change(kWide, gnu), "") << "of a former version";
  EXPECT_TRUE(
      warning_of_change(gnu, clang)
          .ends_with("compiled by Clang 19.1.7; take the same build of ringlet for the whole run"));
  EXPECT_EQ(warning_of_change(kNarrow, gnu).find("compiled"), std::string::npos);
}

TEST(Arithmetic, AnArmComputesAsOtherArmsAlone) {
  const Arithmetic neon{.instruction_set = "neon on ARM", .openblas = "neoversen1"};
  const Arithmetic plain{.instruction_set = "portable on ARM", .openblas = "ARMV8"};
  EXPECT_TRUE(
      warning_of_unlike({neon, kWide})
          .ends_with("process 0 computes with neon on ARM and OpenBLAS's neoversen1, process "
                     "1 computes with avx512 and OpenBLAS's SkylakeX; take processors of "
                     "one kind for all of them"));
  EXPECT_TRUE(warning_of_unlike({neon, plain})
                  .ends_with("set RINGLET_ISA=portable OPENBLAS_CORETYPE=ARMV8 for all of them"));
}

TEST(Arithmetic, ARunThatGoesOnElsewhereIsTold) {
  EXPECT_EQ(warning_of_change(kWide, kWide), "");
  EXPECT_EQ(warning_of_change({.instruction_set = "avx512"}, kWide), "") << "of a former version";
  EXPECT_EQ(warning_of_change(kWide, kNarrow),
            "--exact: this run's bytes may be no other run's, since it was computed with avx512 "
            "and OpenBLAS's SkylakeX so far and goes on with avx2 and OpenBLAS's Haswell; set "
            "RINGLET_ISA=avx2 OPENBLAS_CORETYPE=Haswell for the whole run");
  EXPECT_NE(warning_of_change(kWide, {.gpus = "NVIDIA H200"}), "");
}

}  // namespace
}  // namespace ringlet::train
