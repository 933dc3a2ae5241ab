#include "kernels/cpu/lanes/bf16/table.h"

#include "kernels/cpu/lanes/bf16/bf16.h"

namespace ringlet::lanes::bf16 {

const Table* table_for(Bf16Products products) {
  if constexpr (kX86) {
    if (products == Bf16Products::vectors) return &kVectors;
    if (products == Bf16Products::tiles) return &kTiles;
  }
  return nullptr;
}

}  // namespace ringlet::lanes::bf16
