// SPDX-License-Identifier: Apache-2.0
#pragma once
// Extensions of 64-bit ARM that a processor may lack.
//
// VITRAIL_ARM_EXTENSIONS is 1 where their microkernels are compiled.  Clang before 16 has their intrinsics only in
// files that are compiled for a processor with the extension.
#if defined(__aarch64__) && defined(__linux__) && !(defined(__clang__) && __clang_major__ < 16)
#define VITRAIL_ARM_EXTENSIONS 1
#else
#define VITRAIL_ARM_EXTENSIONS 0
#endif

namespace vitrail::kernels {

// False where the microkernels are not compiled.
bool processor_has_dot_product();  // FEAT_DotProd: SDOT
bool processor_has_i8mm();         // FEAT_I8MM: USMMLA
bool processor_has_arm_bf16();     // FEAT_BF16: BFMMLA

}  // namespace vitrail::kernels
