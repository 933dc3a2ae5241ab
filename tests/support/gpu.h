// Tests that need a GPU say so and are passed over, visibly, where there is none.
#pragma once

#include <gtest/gtest.h>

#include "kernels/cuda_devices.h"

// A macro, since GTEST_SKIP ends the function that it stands in.
#define SKIP_WITHOUT_GPU()               \
  if (ringlet::cuda_device_count() == 0) \
  GTEST_SKIP() << "no GPU: " << ringlet::survey_cuda().why_none
