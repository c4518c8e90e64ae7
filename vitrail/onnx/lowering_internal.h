// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translates recorded operations into operators of ONNX.
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "vitrail/onnx/graph_builder_internal.h"
#include "vitrail/onnx/view_internal.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/tensor/affine_quantization.h"

namespace vitrail::onnx {

class Lowering : public ops::OnnxValues {
 public:
  struct Options {
    int opset = 17;
    bool dynamic_batch = false;
    Outermost outermost = Outermost::batch;
    std::map<std::string, AffineQuantization> activations = {};  // the inputs of linear layers, by layer
  };
  // parameter_names: by storage, for the names of constants.
  Lowering(GraphBuilder& graph, std::map<const Storage*, std::string> parameter_names, const Options& options)
      : graph_(graph), parameter_names_(std::move(parameter_names)), options_(options) {}

  // `value` of the graph has the elements of the recorded input [B, …], which tells the batch.
  void bind_batch(const Tensor& input, const std::string& value);
  void bind(const Tensor& tensor, const std::string& value) override;
  // Throws Error naming the operation if it has no translation.
  void lower(const ops::RecordedOperation& operation);
  std::string value_of(const Tensor& tensor) override;
  // The entries of `activations` that no operation has used.
  std::vector<std::string> unused_activations() const;

 private:
  struct Written {
    std::string value;
    Shape shape;
  };

  ops::OnnxGraph& graph() override { return graph_; }
  std::string name_of_constant(const Tensor& tensor) const override;
  std::string derived_constant(const Tensor& from, const std::string& name,
                               const std::function<Tensor()>& make) override;
  std::string mean(const std::string& x, int64_t axis, bool keep) override;
  std::string difference(const std::string& x, const std::string& y) override;
  void replace_linear(const Tensor& result, const Linear& linear) override;

  std::string constant(const Tensor& tensor);
  std::string full_value_of(const Tensor& tensor);

  std::string transposed_weight(const Tensor& weight);
  std::string matmul(const Tensor& x, const Tensor& weight);
  std::string quantized_matmul(const std::string& x, const AffineQuantization& activation, const Tensor& weight,
                               const std::string& name);
  std::string linear(const ops::RecordedOperation& operation);
  std::string cat(const ops::RecordedOperation& operation);

  GraphBuilder& graph_;
  std::map<const Storage*, std::string> parameter_names_;
  Options options_;
  std::string batch_source_;  // the value whose first extent is the batch
  std::map<const Storage*, Written> written_;
  struct Sum {
    std::string x, bias;
  };
  std::set<std::string> used_activations_;
  std::map<std::string, Sum> sums_;           // linear layers before their activation, by value
  std::map<const Storage*, Linear> linears_;  // by their input: what replaces them
  std::map<std::tuple<const Storage*, int64_t, std::string>, std::string> derived_;  // by source and name
  std::vector<Tensor> alive_;  // keeps the keys of the maps unique
};

}  // namespace vitrail::onnx
