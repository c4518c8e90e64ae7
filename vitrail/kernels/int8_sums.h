#pragma once
// How the int8 product sums up one panel of the weight.  Whole numbers lie several to a word of 32 bits: two of 16 bits,
// or four of 8.  Private to kernels and its tests.
#include <cstdint>

namespace vitrail::kernels {

struct Int8Panel {
  const int32_t* x;  // [rows], ldx words apart
  int64_t ldx;
  const int32_t* panel;  // [words][columns of a panel], 64-byte aligned
  int64_t words, rows;
  int32_t* sums;    // [rows][kMostColumns], 64-byte aligned
  bool accumulate;  // sums += instead of sums =
};

struct Int8Sums {
  // In a word.  2: numbers of 16 bits.  4: of 8 bits, those of the weight signed and those of x without sign, 128 more
  // than they stand for: the processor's products of 8 bits want it so.  What that adds to the sums is subtracted later.
  int64_t numbers;
  void (*add_panel)(const Int8Panel&);
};

// By the multiply-and-add of pairs, under the instruction set that is active now; not for scalar.
Int8Sums pair_sums();
// By AVX-512's VNNI, for panels of 32 columns; only where Isa::avx512_vnni is available.
Int8Sums vnni_sums();

}  // namespace vitrail::kernels
