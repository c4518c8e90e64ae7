// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records operations of the library that no rewrite of a compiled program knows, as OpKind::custom.
#include <functional>
#include <string>
#include <utility>

#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {

// The meta result of an operation whose inputs are made contiguous.  `compute`: see CustomOperation.  attributes: what
// a translation to other operators needs beside the shapes.
inline Tensor recorded_custom(const std::string& name, std::vector<Tensor> inputs, const Shape& result_shape,
                              CustomOperation::Function compute, double flops = 0,
                              CustomOperation::Function compute_half = {}, OpAttributes attributes = {}) {
  Tensor result = symbolic_result(result_shape, inputs[0].dtype());
  for (Tensor& input : inputs) {
    if (input.defined()) input = contiguous(input);
  }
  CustomOperation step{
      .name = name, .compute = std::move(compute), .compute_half = std::move(compute_half), .flops = flops};
  attributes.custom = std::make_shared<const CustomOperation>(std::move(step));
  record(OpKind::custom, std::move(inputs), {result}, attributes);
  return result;
}

}  // namespace vitrail::ops
