// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the products in 8 and 16 bits sum up one panel of the weight.  Numbers lie in words of 32 bits, along what is
// summed over: four bytes (those of the weight with a sign, those of x without, as the processors' products of bytes
// want it; what x's zero adds to the sums is subtracted later), two whole numbers of 16 bits, or two bf16 numbers.
// Private to kernels and its tests.
#include <cstdint>

namespace vitrail::kernels {

constexpr int64_t kAvx512Columns = 32;  // of a panel, for the sums by AVX-512's extensions

struct PackedPanel {
  const int32_t* x;  // [rows], ldx words apart; with transposed_x [words], ldx apart, of a row each
  int64_t ldx;
  const int32_t* panel;  // [words][columns of a panel], 64-byte aligned
  int64_t words, rows;
  void* sums;  // [rows][ld_sums]: int32_t of whole numbers, float of bf16; 64-byte aligned, and so is each row
  int64_t ld_sums;
  int64_t columns = kAvx512Columns;  // wanted; where the panel's left half has them half of the work, but of bytes
  bool accumulate = false;           // sums += instead of sums =
  bool transposed_x = false;         // bf16 only
};

using DotMicrokernel = void (*)(const PackedPanel&);

// Of bytes, under the instruction set that is active now; not for scalar.  int8_microkernel(): no two neighbours of the
// panel (0 and 1, 2 and 3 of a word) sum up to more than kMaxSaturatingPair (int8_weight.h); slower, with any.
DotMicrokernel int8_microkernel();
DotMicrokernel wide_int8_microkernel();

// By AVX-512's extensions: bytes and numbers of 16 bits only where Isa::avx512_vnni is available, bf16 only where
// Isa::avx512_bf16 is.
DotMicrokernel vnni_microkernel();
DotMicrokernel int16_microkernel();
DotMicrokernel bf16_microkernel();

// What attention in bf16 needs to pack the transpose of rows of so many columns (head_packing-inl.h).
inline int64_t packing_floats(int64_t columns) { return columns + kAvx512Columns * ((columns + 1) / 2); }

}  // namespace vitrail::kernels
