// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/arm_extensions_internal.h"

#if VITRAIL_ARM_EXTENSIONS
#include <sys/auxv.h>

namespace vitrail::kernels {
namespace {

// Bits of Linux's asm/hwcap.h, under names that the headers of older systems lack.
constexpr unsigned long kAsimdDp = 1ul << 20;                  // AT_HWCAP
constexpr unsigned long kI8mm = 1ul << 13, kBf16 = 1ul << 14;  // AT_HWCAP2

}  // namespace

bool processor_has_dot_product() { return (::getauxval(AT_HWCAP) & kAsimdDp) != 0; }
bool processor_has_i8mm() { return (::getauxval(AT_HWCAP2) & kI8mm) != 0; }
bool processor_has_arm_bf16() { return (::getauxval(AT_HWCAP2) & kBf16) != 0; }

}  // namespace vitrail::kernels
#else
namespace vitrail::kernels {

bool processor_has_dot_product() { return false; }
bool processor_has_i8mm() { return false; }
bool processor_has_arm_bf16() { return false; }

}  // namespace vitrail::kernels
#endif
