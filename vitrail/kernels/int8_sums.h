#pragma once
// How the int8 product sums up one panel of the weight.  Whole numbers lie four to a word of 32 bits: those of the
// weight with a sign, those of x without, as the processors' products of bytes want it.  What x's zero adds to the sums
// is subtracted later.  Private to kernels and its tests.
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

using Int8Sums = void (*)(const Int8Panel&);

// Under the instruction set that is active now; not for scalar.
Int8Sums byte_sums();
// By AVX-512's VNNI, for panels of 32 columns; only where Isa::avx512_vnni is available.
Int8Sums vnni_sums();

}  // namespace vitrail::kernels
