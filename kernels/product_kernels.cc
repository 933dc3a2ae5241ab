#include "kernels/product_kernels.h"

#include <cblas.h>

namespace ringlet {

std::string product_kernels() { return openblas_get_corename(); }

}  // namespace ringlet
