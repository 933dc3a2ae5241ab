// What multiplies matrices on the processor.
#pragma once

#include <string>

namespace ringlet {

/// The kernels that OpenBLAS took for this processor, or that OPENBLAS_CORETYPE names: "SkylakeX".
/// Others add in another order, so products have other last bits.
std::string product_kernels();

}  // namespace ringlet
