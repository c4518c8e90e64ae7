// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an operation states its operators of ONNX with.  vitrail/onnx implements the classes.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using Ints = std::vector<int64_t>;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, Ints, std::string> value;
};

// Values are named.  Every operator has one output, whose name node() returns.
class OnnxGraph {
 public:
  virtual ~OnnxGraph() = default;

  // Two equal calls give the same value: an operator is computed once.  An optional input that is left out is "".
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttribute>& attributes = {}) {
    return add_node(op, inputs, attributes);
  }
  // f32, i8, u8 or i64; may be a strided view.
  virtual std::string constant(const Tensor& tensor, const std::string& name) = 0;
  virtual std::string constant(const Ints& values) = 0;
  virtual std::string scalar(double value) = 0;

  std::string reshape(const std::string& x, const Ints& shape) { return node("Reshape", {x, constant(shape)}); }
  std::string transpose(const std::string& x, const Ints& order) { return node("Transpose", {x}, {{"perm", order}}); }
  std::string slice(const std::string& x, const Ints& axes, const Ints& starts, const Ints& ends) {
    return node("Slice", {x, constant(starts), constant(ends), constant(axes)});
  }

 private:
  virtual std::string add_node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::vector<OnnxAttribute>& attributes) = 0;
};

// The values of recorded tensors.  Extents of the batch in a graph are not those that were recorded.
class OnnxValues {
 public:
  virtual ~OnnxValues() = default;

  virtual OnnxGraph& graph() = 0;
  // The value of a tensor: a view of a result, or a constant, whose repeated axes have extent 1.
  virtual std::string value_of(const Tensor& tensor) = 0;
  virtual std::string name_of_constant(const Tensor& tensor) const = 0;  // that of the parameter, or "constant"
  // The constant that `make` derives from another one, once.
  virtual std::string derived_constant(const Tensor& from, const std::string& name,
                                       const std::function<Tensor()>& make) = 0;
  virtual void bind(const Tensor& result, const std::string& value) = 0;  // for a further result
  virtual std::string mean(const std::string& x, int64_t axis, bool keep) = 0;
  // x − y; what y was added to, if x is the sum of a linear layer and its bias y.
  virtual std::string difference(const std::string& x, const std::string& y) = 0;
  // Linear layers that read `result` call `linear` with weight and bias instead of multiplying.
  using Linear = std::function<std::string(const Tensor& weight, const Tensor& bias)>;
  virtual void replace_linear(const Tensor& result, const Linear& linear) = 0;
};

}  // namespace vitrail::ops
