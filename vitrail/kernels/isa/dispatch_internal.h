// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel's dispatch table: one row per target, which active_isa() chooses from.
//
//   VITRAIL_EXPORT(softmax_row, scalar::softmax_row);  // under HWY_ONCE, in the .cpp that compiles softmax_row
//   VITRAIL_DISPATCH(softmax_row)(x, y, cols);
//
// A new target (SVE) is an enumerator and its features here, a column in VITRAIL_EXPORT, and an Isa in isa.cpp.
// Highway's own tables are not used: they need its library, which measures a clock whenever a process starts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {

// What a kernel is compiled for.  scalar is the reference, which needs no target of Highway's.
enum class Target : uint8_t { scalar, sse4, avx2, avx512, neon };
constexpr size_t kNumTargets = static_cast<size_t>(Target::neon) + 1;

constexpr Target target_of(FeatureSet features) {
  if (features.has(Feature::avx512)) return Target::avx512;
  if (features.has(Feature::avx2)) return Target::avx2;
  if (features.has(Feature::sse4)) return Target::sse4;
  if (features.has(Feature::neon)) return Target::neon;
  return Target::scalar;
}

template <class Function>
using KernelTable = std::array<Function*, kNumTargets>;

template <class Function>
Function& dispatch(const KernelTable<Function>& versions) {
  return *versions[static_cast<size_t>(target_of(active_features()))];
}

// A version is null if the compiler's baseline is above its target, or on another architecture: the version below it is
// used then.  Highway's own baseline is in the table only for SSE4, and only if that is null, and for NEON, which is
// the baseline of 64-bit ARM.
template <class Function>
constexpr KernelTable<Function> kernel_table(Function* baseline, std::type_identity_t<Function>* scalar,
                                             std::type_identity_t<Function>* sse4, std::type_identity_t<Function>* avx2,
                                             std::type_identity_t<Function>* avx512) {
  Function* const first = sse4 ? sse4 : baseline;
  Function* const second = avx2 ? avx2 : first;
  return std::to_array<Function*>({scalar, first, second, avx512 ? avx512 : second, baseline});
}

}  // namespace vitrail::kernels

// SCALAR: the kernel's reference, a function of the same type (or a template or overload set that has one).  nullptr if
// the kernel is never dispatched under Isa::scalar.
#if HWY_ARCH_X86
#define VITRAIL_EXPORT(KERNEL, SCALAR)                                  \
  constexpr auto KERNEL##_by_target = ::vitrail::kernels::kernel_table( \
      &HWY_STATIC_DISPATCH(KERNEL), SCALAR, HWY_CHOOSE_SSE4(KERNEL), HWY_CHOOSE_AVX2(KERNEL), HWY_CHOOSE_AVX3(KERNEL))
#else
#define VITRAIL_EXPORT(KERNEL, SCALAR) \
  constexpr auto KERNEL##_by_target =  \
      ::vitrail::kernels::kernel_table(&HWY_STATIC_DISPATCH(KERNEL), SCALAR, nullptr, nullptr, nullptr)
#endif
#define VITRAIL_DISPATCH(KERNEL) ::vitrail::kernels::dispatch(KERNEL##_by_target)
