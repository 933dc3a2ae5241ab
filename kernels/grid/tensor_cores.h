// Products of narrow numbers by the tensor cores of a warp, added up in f32, and the shared memory
// that they read. On the host each thread finds its own sums in a loop.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.h"
#include "kernels/narrow_floats.h"

namespace ringlet::grid {

inline constexpr int kWarp = 32;

/// Rows of narrow numbers in shared memory, in chunks of sixteen bytes. Within each 128 bytes the
/// chunks of a row change places, differently in each of eight rows: so the chunks of one number in
/// eight rows, which a warp reads at once, lie in different banks.
template <class T, int kOfRows, int kOfColumns>
struct alignas(128) Slab {
  static constexpr int kRows = kOfRows, kColumns = kOfColumns;
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  static constexpr int kChunks = kColumns / kChunk;  // of a row
  static_assert(kChunks % 8 == 0);

  T values[kRows * kColumns];

  RINGLET_HOST_DEVICE T* chunk(int row, int number) { return values + place(row, number); }
  RINGLET_HOST_DEVICE const T* chunk(int row, int number) const {
    return values + place(row, number);
  }

 private:
  RINGLET_HOST_DEVICE static int place(int row, int number) {
    return row * kColumns + (number ^ (row % 8)) * kChunk;
  }
};

/// Copies a chunk to shared memory, or writes zeros. On a GPU it is there once its turn's copies
/// have been waited for (run_pipeline()); `from` has to be an address that could be read anyway.
template <class T>
RINGLET_HOST_DEVICE void copy_chunk(T* to, const T* from, bool is_there) {
#ifdef __CUDA_ARCH__
  const int bytes = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
#else
  for (int i = 0; i < 16 / static_cast<int>(sizeof(T)); ++i) to[i] = is_there ? from[i] : T{};
#endif
}

/// The sums of a warp, kRows x kColumns of them: sums[m][n] += a[k][m] * b[k][n]. Each thread has
/// some in registers. The products are exact; of how a GPU adds them only this is known, that the
/// bits are the same each time.
template <int kRows, int kColumns>
class WarpSums {
 public:
  RINGLET_HOST_DEVICE void clear() {
    RINGLET_UNROLLED
    for (int i = 0; i < kDown; ++i) {
      RINGLET_UNROLLED
      for (int j = 0; j < kAcross; ++j) {
        RINGLET_UNROLLED
        for (int e = 0; e < 4; ++e) sums_[i][j][e] = 0;
      }
    }
  }

  /// Adds the products of columns [first_a, first_a + kRows) of `a` and [first_b, first_b +
  /// kColumns) of `b` over all of their rows. All threads of a warp call it. Only sums before
  /// `rows` and `columns` are asked for: on the host, which has no warps, the others are left out.
  template <class T, int kDepth, int kOfA, int kOfB>
  RINGLET_HOST_DEVICE void add(const Slab<T, kDepth, kOfA>& a, int first_a,
                               const Slab<T, kDepth, kOfB>& b, int first_b, int lane,
                               [[maybe_unused]] std::int64_t rows,
                               [[maybe_unused]] std::int64_t columns) {
    static_assert(kDepth % kStep == 0);
#ifdef __CUDA_ARCH__
    // Lane l brings row l % 8 of the 8 x 8 matrix l / 8. They are stored with k going down, and
    // read transposed.
    const int matrix = lane / 8, row = lane % 8;
    RINGLET_UNROLLED
    for (int k = 0; k < kDepth; k += kStep) {
      std::uint32_t of_a[kDown][4], of_b[kAcross / 2][4];
      RINGLET_UNROLLED
      for (int i = 0; i < kDown; ++i) {
        read_transposed(of_a[i],
                        a.chunk(k + matrix / 2 * 8 + row, first_a / 8 + i * 2 + matrix % 2));
      }
      RINGLET_UNROLLED
      for (int j = 0; j < kAcross / 2; ++j) {
        read_transposed(of_b[j],
                        b.chunk(k + matrix % 2 * 8 + row, first_b / 8 + j * 2 + matrix / 2));
      }
      RINGLET_UNROLLED
      for (int i = 0; i < kDown; ++i) {
        RINGLET_UNROLLED
        for (int j = 0; j < kAcross / 2; ++j) {
          multiply<T>(of_a[i], of_b[j][0], of_b[j][1], sums_[i][j * 2]);
          multiply<T>(of_a[i], of_b[j][2], of_b[j][3], sums_[i][j * 2 + 1]);
        }
      }
    }
#else
    each_pair(lane, *this, [&](int m, int n, float* pair) {
      if (m >= rows) return;
      for (int e = 0; e < 2 && n + e < columns; ++e) {
        const int column_a = first_a + m, column_b = first_b + n + e;
        for (int k = 0; k < kDepth; ++k) {
          pair[e] += widen(a.chunk(k, column_a / 8)[column_a % 8]) *
                     widen(b.chunk(k, column_b / 8)[column_b % 8]);
        }
      }
    });
#endif
  }

  /// f(m, n, pair) for the thread's sums: pair[0] of (m, n) and pair[1] of (m, n + 1).
  template <class F>
  RINGLET_HOST_DEVICE void for_each_pair(int lane, const F& f) const {
    each_pair(lane, *this, f);
  }

 private:
  static constexpr int kStep = 16;  // rows that an instruction multiplies
  static constexpr int kDown = kRows / 16, kAcross = kColumns / 8;
  static_assert(kRows % 16 == 0 && kColumns % 16 == 0);

  template <class Self, class F>
  RINGLET_HOST_DEVICE static void each_pair(int lane, Self& self, const F& f) {
    RINGLET_UNROLLED
    for (int i = 0; i < kDown; ++i) {
      RINGLET_UNROLLED
      for (int j = 0; j < kAcross; ++j) {
        RINGLET_UNROLLED
        for (int half = 0; half < 2; ++half) {
          f(i * 16 + half * 8 + lane / 4, j * 8 + lane % 4 * 2, &self.sums_[i][j][half * 2]);
        }
      }
    }
  }

#ifdef __CUDA_ARCH__
  __device__ static void read_transposed(std::uint32_t (&into)[4], const void* chunk) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(chunk)))
                 : "memory");
  }

  template <class T>
  __device__ static void multiply(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                  float (&sums)[4]) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      static_assert(std::is_same_v<T, Half>);
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
  }
#endif

  float sums_[kDown][kAcross][4];
};

}  // namespace ringlet::grid
