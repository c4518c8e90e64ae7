// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translates recorded operations into operators of ONNX.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/onnx/graph_builder_internal.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::onnx {

// activation(x).
std::string lower_activation(GraphBuilder& graph, kernels::Activation activation, const std::string& x);

class Lowering {
 public:
  struct Options {
    int opset = 17;
    bool dynamic_batch = false;
  };
  // parameter_names: by storage, for the names of constants.
  Lowering(GraphBuilder& graph, std::map<const Storage*, std::string> parameter_names, const Options& options)
      : graph_(graph), parameter_names_(std::move(parameter_names)), options_(options) {}

  // `value` of the graph has the elements of the recorded input.
  void bind(const Tensor& tensor, const std::string& value);
  // Throws Error naming the operation if it has no translation.
  void lower(const ops::Operation& operation);
  // The value of a tensor: a view of a result, or a constant, whose repeated axes have extent 1.
  std::string value_of(const Tensor& tensor);

 private:
  struct Written {
    std::string value;
    Shape shape;
  };

  std::string result_of(const ops::Operation& operation);
  std::string constant(const Tensor& tensor, const std::string& suffix = "");
  std::string full_value_of(const Tensor& tensor);
  std::string mean(const std::string& x, int64_t axis, bool keep);

  std::string linear(const ops::Operation& operation);
  std::string layer_norm(const ops::Operation& operation);
  std::string rms_norm(const ops::Operation& operation);
  std::string residual_add(const ops::Operation& operation);
  std::string attention(const ops::Operation& operation);
  std::string rotary(const ops::Operation& operation);
  std::string patchify(const ops::Operation& operation);
  std::string silu_gate(const ops::Operation& operation);
  std::string cat(const ops::Operation& operation);

  GraphBuilder& graph_;
  std::map<const Storage*, std::string> parameter_names_;
  Options options_;
  std::map<const Storage*, Written> written_;
  struct RotaryFactors {
    std::string own, other;
  };
  std::map<std::pair<const Storage*, int64_t>, RotaryFactors> rotary_factors_;  // by table
  std::vector<Tensor> alive_;                                                   // keeps the keys of both maps unique
};

}  // namespace vitrail::onnx
