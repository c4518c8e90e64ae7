// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every recorded operation once or more, for the tests of ops, infer and onnx that hold for all of them.
#include <vector>

#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/batch_norm.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/deformable_attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/l2_normalize.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/max_pool.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/sigreg.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/sort.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::testing {

struct OperationCase {
  const char* name;           // Operation::name
  std::vector<Shape> shapes;  // inputs; the first extent of the first one is a batch
  Tensor (*run)(const std::vector<Tensor>& in);
  bool keeps_token_order = false;
  bool differentiable = true, compiled = true, exported = true;
  double flops = 0;  // Operation::flops, for these shapes
};
inline void PrintTo(const OperationCase& each, std::ostream* out) { *out << each.name; }

inline const std::vector<OperationCase>& operation_cases() {
  using In = const std::vector<Tensor>&;
  using kernels::Activation;
  static const auto heads = [](const Tensor& qkv, int64_t part) {  // [B, 5, 3 · 2 · 4] → [B, 2, 5, 4]
    return ops::contiguous(qkv).view({qkv.size(0), 5, 3, 2, 4}).permute({2, 0, 3, 1, 4}).select(0, part);
  };
  static const std::vector<OperationCase> cases{
      {.name = "linear",
       .shapes = {{2, 3, 4}, {5, 4}, {5}},
       .run = [](In in) { return ops::linear(in[0], in[1], in[2], Activation::gelu); },
       .keeps_token_order = true,
       .flops = 2 * 2 * 3 * 4 * 5},
      {.name = "linear",
       .shapes = {{2, 3, 4}, {5, 4}},
       .run = [](In in) { return ops::linear(in[0], in[1], {}); },
       .keeps_token_order = true,
       .flops = 2 * 2 * 3 * 4 * 5},
      {.name = "layer_norm",
       .shapes = {{2, 3, 5}, {5}, {5}},
       .run = [](In in) { return ops::layer_norm(in[0], in[1], in[2], 0.5); },
       .keeps_token_order = true},
      {.name = "layer_norm",
       .shapes = {{2, 3, 5}, {5}},
       .run = [](In in) { return ops::layer_norm(in[0], {}, in[1], 0.5); },
       .keeps_token_order = true},
      {.name = "rms_norm",
       .shapes = {{2, 3, 5}, {5}},
       .run = [](In in) { return ops::rms_norm(in[0], in[1], 0.5); },
       .keeps_token_order = true},
      {.name = "rms_norm",
       .shapes = {{2, 3, 5}},
       .run = [](In in) { return ops::rms_norm(in[0], {}, 0.5); },
       .keeps_token_order = true},
      {.name = "batch_norm",
       .shapes = {{4, 3}, {3}, {3}},
       .run = [](In in) { return ops::batch_norm(in[0], in[1], in[2], 0.5); },
       .exported = false},
      {.name = "l2_normalize",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::l2_normalize(in[0]); },
       .keeps_token_order = true,
       .exported = false},
      {.name = "residual_add",
       .shapes = {{2, 3, 4}, {4}},
       .run = [](In in) { return ops::residual_add(in[0], in[0], in[1]); },
       .keeps_token_order = true},
      {.name = "attention",
       .shapes = {{2, 5, 24}, {2, 1, 5}},
       .run = [](In in) { return ops::attention(heads(in[0], 0), heads(in[0], 1), heads(in[0], 2), 0.4, in[1]).out; },
       .keeps_token_order = true,
       .flops = 2 * (2 * 2 * 2 * 5 * 5 * 4)},
      {.name = "rotary",
       .shapes = {{2, 3, 24}, {1, 2, 2, 2}},
       .run = [](In in) { return ops::rotary(in[0], ops::rotary_table(in[1]), 2, ops::RotaryPairs::interleaved); },
       .keeps_token_order = true},
      {.name = "rotary_table",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::rotary_table(in[0]); },
       .exported = false},
      {.name = "patchify", .shapes = {{2, 3, 5, 6}}, .run = [](In in) { return ops::patchify(in[0], 2, 3); }},
      {.name = "activation",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::activation(in[0], Activation::quick_gelu); },
       .keeps_token_order = true},
      {.name = "silu_gate",
       .shapes = {{2, 3, 8}},
       .run = [](In in) { return ops::silu_gate(in[0]); },
       .keeps_token_order = true},
      {.name = "add",
       .shapes = {{2, 3, 4}, {3, 1}},
       .run = [](In in) { return ops::add(in[0], in[1]); },
       .keeps_token_order = true},
      {.name = "mul",
       .shapes = {{2, 3, 4}, {1, 3, 4}},
       .run = [](In in) { return ops::mul(in[1], in[0]); },
       .keeps_token_order = true},
      {.name = "exp",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::exp(in[0]); },
       .keeps_token_order = true,
       .exported = false},
      {.name = "cat",
       .shapes = {{2, 3, 4}},
       .run =
           [](In in) {
             return ops::cat({in[0], ops::mul(in[0], in[0]), in[0]}, 1);
           }},
      {.name = "mean", .shapes = {{2, 3, 4}}, .run = [](In in) { return ops::mean(in[0], 1); }},
      {.name = "mean", .shapes = {{2, 3, 4}}, .run = [](In in) { return ops::mean(in[0], -1); }},
      {.name = "copy",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::contiguous(ops::mul(in[0], in[0]).transpose(1, 2)); },
       .keeps_token_order = true},
      {.name = "merge_tokens",
       .shapes = {{2, 9, 6}},
       .run =
           [](In in) {
             return ops::merge_tokens(in[0], in[0].unsqueeze(1), ops::mean(ops::mul(in[0], in[0]), 2), 3, 2).x;
           },
       .keeps_token_order = true,
       .differentiable = false,
       .exported = false,
       .flops = 2.0 * 2 * 6 * 4.5 * 4.5},
      {.name = "embedding",
       .shapes = {{7, 3}},
       .run =
           [](In in) {
             return ops::embedding(Tensor::from<int64_t>({2, 2}, {6, 0, 3, 3}), in[0]);
           },
       .compiled = false},  // ids are an input of a program
      {.name = "matmul",
       .shapes = {{2, 4, 3}},
       .run = [](In in) { return ops::matmul(in[0], in[0].transpose(1, 2)); },
       .flops = 2 * 2 * 4 * 4 * 3},
      {.name = "sort_columns",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::sort_columns(in[0]); },
       .exported = false},
      {.name = "mean_squared_error",
       .shapes = {{2, 3, 4}},
       .run = [](In in) { return ops::mean_squared_error(in[0], ops::mul(in[0], in[0])); },
       .exported = false},
      {.name = "sigreg",
       .shapes = {{2, 3, 4}, {4, 5}},
       .run = [](In in) { return ops::sigreg(in[0], in[1]); },
       .exported = false},
      {.name = "softmax", .shapes = {{2, 3, 7}}, .run = [](In in) { return ops::softmax(in[0]); }},
      {.name = "resize_bilinear",
       .shapes = {{2, 3, 4, 5}},
       .run = [](In in) { return ops::resize_bilinear(in[0], 7, 3); }},
      {.name = "resize_map",
       .shapes = {{2, 4, 5, 3}},
       .run = [](In in) { return ops::resize_map(in[0], 7, 3, ops::Corners::aligned); }},
      {.name = "resize_map", .shapes = {{2, 4, 5, 3}}, .run = [](In in) { return ops::resize_map(in[0], 7, 3); }},
      {.name = "window_partition",
       .shapes = {{2, 3, 5, 4}, {4}},
       .run = [](In in) { return ops::window_partition(in[0], 2, in[1]); }},
      {.name = "window_partition",
       .shapes = {{2, 3, 5, 4}},
       .run = [](In in) { return ops::window_partition(in[0], 2); }},
      {.name = "window_unpartition",
       .shapes = {{2, 3, 5, 4}},
       .run = [](In in) { return ops::window_unpartition(ops::window_partition(in[0], 2), 2, 3, 5); }},
      {.name = "unfold_3x3",
       .shapes = {{2, 5, 4, 3}, {2, 27}},
       .run = [](In in) { return ops::linear(ops::unfold_3x3(in[0], 2), in[1], {}); }},
      {.name = "unfold",
       .shapes = {{2, 7, 6, 2}, {4, 2 * 5 * 5}},
       .run =
           [](In in) {
             return ops::linear(ops::unfold(in[0], {5, 2, 1}), in[1], {});
           }},
      {.name = "max_pool_2x2", .shapes = {{2, 5, 4, 3}}, .run = [](In in) { return ops::max_pool_2x2(in[0]); }},
      {.name = "unfold_3x3_rows",
       .shapes = {{2, 5, 4, 3}},
       .run = [](In in) { return ops::unfold_3x3_rows(in[0], 2, 1, 2); },
       .exported = false},
      {.name = "depthwise_conv_3x3",
       .shapes = {{2, 4, 5, 3}, {3, 3, 3}, {3}},
       .run = [](In in) { return ops::depthwise_conv_3x3(in[0], in[1], in[2], 2); },
       .flops = 2.0 * 9 * 2 * 2 * 3 * 3},
      {.name = "pixel_shuffle", .shapes = {{2, 3, 2, 12}}, .run = [](In in) { return ops::pixel_shuffle(in[0], 2); }},
      {.name = "relative_self_attention",
       .shapes = {{2, 6, 24}, {3, 4}, {5, 4}},
       .run =
           [](In in) {
             return ops::relative_self_attention(in[0], 2, 0.3, in[1], in[2], {2, 3});
           },
       .flops = 2.0 * 8 * 6 * (4 * 6 + 4 * (2 + 3))},
      {.name = "deformable_attention",
       .shapes = {{2, 8, 30}},
       .run =
           [](In in) {
             const auto part = [&](int64_t rows, int64_t first, int64_t count) {
               return ops::contiguous(in[0].narrow(1, 0, rows).narrow(2, first, count));
             };
             const int64_t batch = in[0].size(0);
             return ops::deformable_attention(part(8, 0, 6).view({batch, 8, 2, 3}),
                                              part(3, 6, 16).view({batch, 3, 2, 2, 2, 2}),
                                              part(3, 22, 8).view({batch, 3, 2, 2, 2}), {{2, 3}, {1, 2}});
           },
       .flops = 2.0 * 4 * 2 * 3 * 2 * 2 * 2 * 3},
  };
  return cases;
}

// Random inputs of a case.
inline std::vector<Tensor> inputs_of(const OperationCase& each, DType dtype = DType::f32) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : each.shapes) inputs.push_back(Tensor::randn(shape, inputs.size() + 1, dtype));
  return inputs;
}

}  // namespace vitrail::testing
