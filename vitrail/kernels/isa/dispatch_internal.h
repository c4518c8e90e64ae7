// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel, compiled for several instruction sets, called by the one that active_isa() says:
//
//   VITRAIL_EXPORT(add_span);                       // beside the kernel's .cpp's other definitions, under HWY_ONCE
//   VITRAIL_DISPATCH(add_span)(a, b, out, n);
//
// Highway has such tables of its own, in a library whose start measures a clock for 4 ms of every process that is
// linked with it.  These need its headers alone.
#include <array>
#include <cstddef>
#include <type_traits>

#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {

// SSE4, AVX2, AVX-512.
constexpr size_t kDispatchTargets = 3;

// scalar has no target: kernels branch off to their reference before they dispatch.
inline size_t dispatch_index() {
  const Isa isa = active_isa();
  return isa >= Isa::avx512 ? 2 : isa >= Isa::avx2 ? 1 : 0;
}

// A target is null where the compiler's own baseline is above it, or another architecture: the one below it stands in.
template <class Function>
constexpr std::array<Function*, kDispatchTargets> kernel_table(Function* baseline, std::type_identity_t<Function>* sse4,
                                                               std::type_identity_t<Function>* avx2,
                                                               std::type_identity_t<Function>* avx512) {
  Function* const first = sse4 ? sse4 : baseline;
  Function* const second = avx2 ? avx2 : first;
  return {first, second, avx512 ? avx512 : second};
}

}  // namespace vitrail::kernels

#if HWY_ARCH_X86
#define VITRAIL_EXPORT(KERNEL)                                          \
  constexpr auto KERNEL##_by_target = ::vitrail::kernels::kernel_table( \
      &HWY_STATIC_DISPATCH(KERNEL), HWY_CHOOSE_SSE4(KERNEL), HWY_CHOOSE_AVX2(KERNEL), HWY_CHOOSE_AVX3(KERNEL))
#else
#define VITRAIL_EXPORT(KERNEL)        \
  constexpr auto KERNEL##_by_target = \
      ::vitrail::kernels::kernel_table(&HWY_STATIC_DISPATCH(KERNEL), nullptr, nullptr, nullptr)
#endif
#define VITRAIL_DISPATCH(KERNEL) (*KERNEL##_by_target[::vitrail::kernels::dispatch_index()])
