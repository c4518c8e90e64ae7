// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translates recorded operations into operators of ONNX.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/onnx/graph_builder_internal.h"
#include "vitrail/onnx/view_internal.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/tensor/affine_quantization.h"

namespace vitrail::onnx {

// activation(x).
std::string lower_activation(GraphBuilder& graph, kernels::Activation activation, const std::string& x);

class Lowering {
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
  void bind(const Tensor& tensor, const std::string& value);
  // Throws Error naming the operation if it has no translation.
  void lower(const ops::Operation& operation);
  // The value of a tensor: a view of a result, or a constant, whose repeated axes have extent 1.
  std::string value_of(const Tensor& tensor);
  // The entries of `activations` that no operation has used.
  std::vector<std::string> unused_activations() const;

 private:
  struct Written {
    std::string value;
    Shape shape;
  };

  std::string result_of(const ops::Operation& operation);
  std::string name_of_constant(const Tensor& tensor) const;
  std::string constant(const Tensor& tensor);
  std::string full_value_of(const Tensor& tensor);
  std::string mean(const std::string& x, int64_t axis, bool keep);

  std::string transposed_weight(const Tensor& weight);
  std::string matmul(const Tensor& x, const Tensor& weight);
  std::string quantized_matmul(const std::string& x, const AffineQuantization& activation, const Tensor& weight,
                               const std::string& name);
  std::string linear(const ops::Operation& operation);
  std::string layer_norm(const ops::Operation& operation);
  std::string rms_norm(const ops::Operation& operation);
  std::string residual_add(const ops::Operation& operation);
  std::string attention(const ops::Operation& operation);
  std::string rotary(const ops::Operation& operation);
  std::string patchify(const ops::Operation& operation);
  std::string silu_gate(const ops::Operation& operation);
  std::string cat(const ops::Operation& operation);
  std::string embedding(const ops::Operation& operation);

  // Custom operations of the library, by their names.
  using Rule = std::string (Lowering::*)(const ops::Operation&);
  static const std::map<std::string, Rule>& custom_rules();
  std::string custom(const ops::Operation& operation);
  std::string matmul(const ops::Operation& operation);
  std::string window_partition(const ops::Operation& operation);
  std::string window_unpartition(const ops::Operation& operation);
  std::string padded_windows(const std::string& x, const Tensor& fill, const Ints& pads);
  std::string relative_self_attention(const ops::Operation& operation);
  std::string relative_scores(const Tensor& q, const ops::Operation& operation);
  std::string offset_table(const Tensor& table, int64_t positions);
  std::string depthwise_conv_3x3(const ops::Operation& operation);
  std::string unfolded_linear(const ops::Operation& unfold, const ops::Operation& operation);
  std::string convolution(const Tensor& x, const std::vector<std::string>& weights, int64_t stride, int64_t group);
  std::string pixel_shuffle(const ops::Operation& operation);

  GraphBuilder& graph_;
  std::map<const Storage*, std::string> parameter_names_;
  Options options_;
  std::string batch_source_;  // the value whose first extent is the batch
  std::map<const Storage*, Written> written_;
  struct Sum {
    std::string x, bias;
  };
  std::set<std::string> used_activations_;
  std::map<std::string, Sum> sums_;                   // linear layers before their activation, by value
  std::map<const Storage*, ops::Operation> unfolds_;  // only the linear layers of convolutions read them
  struct RotaryFactors {
    std::string own, other;
  };
  std::map<std::pair<const Storage*, int64_t>, RotaryFactors> rotary_factors_;  // by table
  std::vector<Tensor> alive_;                                                   // keeps the keys of both maps unique
};

}  // namespace vitrail::onnx
