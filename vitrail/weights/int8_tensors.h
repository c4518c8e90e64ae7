#pragma once
// Weights in 8 bits, as vitrail's own files hold them: NAME of i8 [out, in] beside NAME_scale of f32 [out].  Row r of
// the weight is scale[r] times the whole numbers of row r, which lie between −127 and 127.
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

inline std::string int8_scale_name(const std::string& weight) { return weight + "_scale"; }

struct Int8Weight {
  Tensor numbers;  // i8 [out, in]
  Tensor scales;   // f32 [out]
};

// The nearest such weight to a floating [out, in]; the largest of a row becomes ±127.  Packed for int8 products, the
// weight that from_int8() gives back makes the same whole numbers where these go to ±127 as well (the reference,
// AVX-512 VNNI); where they go to ±63 it is rounded a second time (kernels/int8_product.cpp).
// Throws Error naming the first element that is not finite.
Int8Weight to_int8(const Tensor& weight);
Tensor from_int8(const Int8Weight& weight, DType dtype);  // throws Error when the shapes do not belong together

}  // namespace vitrail::weights
