// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/characteristic_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/characteristic_sums.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/sin_cos-inl.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// e^{ikθ} for k = 1, 2, …: each is the one before, rotated by θ.
struct Harmonic {
  V cosine, sine, first_cosine, first_sine;

  HWY_INLINE explicit Harmonic(V angle) {
    sin_cos(D(), angle, &first_sine, &first_cosine);
    cosine = first_cosine, sine = first_sine;
  }
  HWY_INLINE void advance() {
    const V next = hn::NegMulAdd(sine, first_sine, hn::Mul(cosine, first_cosine));
    sine = hn::MulAdd(sine, first_cosine, hn::Mul(cosine, first_sine));
    cosine = next;
  }
};

// Adds the rows of u to sums [kHarmonics, 2, cols], whose rows are `sums_stride` apart.
void add_characteristic(const float* u, int64_t ldu, int64_t rows, int64_t cols, float step, float* sums,
                        int64_t sums_stride) {
  const D d;
  const V steps = hn::Set(d, step);
  for (int64_t r = 0; r < rows; ++r, u += ldu) {
    for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
      Harmonic harmonic(hn::Mul(memory.load(u + c), steps));
      float* sum = sums + c;
      for (int64_t k = 0; k < kHarmonics; ++k, sum += 2 * sums_stride) {
        memory.store(hn::Add(memory.load(sum), harmonic.cosine), sum);
        memory.store(hn::Add(memory.load(sum + sums_stride), harmonic.sine), sum + sums_stride);
        harmonic.advance();
      }
    });
  }
}

// The equation of characteristic_sums_backward(), for rows of u and grad_u that are `ldu` apart.
void characteristic_gradient(const float* u, int64_t ldu, int64_t rows, int64_t cols, float step,
                             const float* grad_sums, int64_t sums_stride, float* grad_u) {
  const D d;
  const V steps = hn::Set(d, step);
  for (int64_t r = 0; r < rows; ++r, u += ldu, grad_u += ldu) {
    for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
      Harmonic harmonic(hn::Mul(memory.load(u + c), steps));
      V gradient = hn::Zero(d), multiple = hn::Zero(d);
      const float* grad = grad_sums + c;
      for (int64_t k = 0; k < kHarmonics; ++k, grad += 2 * sums_stride) {
        multiple = hn::Add(multiple, steps);
        const V of_sine = hn::Mul(memory.load(grad + sums_stride), harmonic.cosine);
        gradient = hn::MulAdd(multiple, hn::NegMulAdd(memory.load(grad), harmonic.sine, of_sine), gradient);
        harmonic.advance();
      }
      memory.store(gradient, grad_u + c);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/rowwise/scalar_characteristic_sums_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(add_characteristic, scalar::characteristic_sums);
VITRAIL_EXPORT(characteristic_gradient, scalar::characteristic_sums_backward);

constexpr int64_t kSums = 2 * kHarmonics;
constexpr int64_t kBlock = 64;  // columns whose sums take 8 KiB of L1

// Calls body(first element of u, first element of the sums, width, block) for blocks of columns of each view, in
// parallel.  `block` [kSums, kBlock] is memory for the sums of the block: rows that are a power of two apart, as those
// of the sums, would share the sets of L1.
template <class Body>
void for_blocks(int64_t views, int64_t rows, int64_t cols, Body body) {
  const int64_t blocks = ceil_div(cols, kBlock);
  parallel_for(0, views * blocks, 1, [&](int64_t begin, int64_t end) {
    float block[kSums * kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t view = i / blocks, first = i % blocks * kBlock;
      body(view * rows * cols + first, view * kSums * cols + first, std::min(kBlock, cols - first), block);
    }
  });
}

}  // namespace

void characteristic_sums(const float* u, int64_t views, int64_t rows, int64_t cols, float step, float* sums) {
  auto* const add = &VITRAIL_DISPATCH(add_characteristic);
  for_blocks(views, rows, cols, [=](int64_t at, int64_t sum, int64_t width, float* block) {
    std::fill_n(block, kSums * kBlock, 0.0f);
    add(u + at, cols, rows, width, step, block, kBlock);
    for (int64_t k = 0; k < kSums; ++k) std::copy_n(block + k * kBlock, width, sums + sum + k * cols);
  });
}

void characteristic_sums_backward(const float* u, int64_t views, int64_t rows, int64_t cols, float step,
                                  const float* grad_sums, float* grad_u) {
  auto* const gradient = &VITRAIL_DISPATCH(characteristic_gradient);
  for_blocks(views, rows, cols, [=](int64_t at, int64_t sum, int64_t width, float* block) {
    for (int64_t k = 0; k < kSums; ++k) std::copy_n(grad_sums + sum + k * cols, width, block + k * kBlock);
    gradient(u + at, cols, rows, width, step, block, kBlock, grad_u + at);
  });
}

}  // namespace vitrail::kernels
#endif
