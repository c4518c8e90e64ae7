// SPDX-License-Identifier: Apache-2.0
// Multi-head self-attention step by step: softmax(q kᵀ / √d) v with the shape and values of every intermediate tensor.
// The layer is timm's Attention; the input is 10 random tokens.
#include "examples/show.h"
#include "vitrail/nn/attention.h"
#include "vitrail/nn/trace.h"

namespace {

using namespace vitrail;

// B = 1 sample, N = 10 tokens, C = 512 channels in H = 8 heads of d = 64.
const std::vector<std::pair<std::string, Shape>> steps{
    {"qkv", {1, 10, 1536}},               // x W, three matrices in one
    {"qkv_reshaped", {1, 10, 3, 8, 64}},  // the axes of 3 × 8 × 64: q, k or v; head; channel
    {"qkv_permuted", {3, 1, 8, 10, 64}},  // q, k and v first
    {"q", {1, 8, 10, 64}},                // x W_q, split into heads
    {"k", {1, 8, 10, 64}},                //
    {"v", {1, 8, 10, 64}},                //
    {"k_transposed", {1, 8, 64, 10}},     // for the matrix product q kᵀ of each head
    {"scores", {1, 8, 10, 10}},           // q kᵀ / √64: similarity of query i and key j
    {"weights", {1, 8, 10, 10}},          // softmax over j: each row sums to 1
    {"context", {1, 8, 10, 64}},          // weights · v: weighted mean of the values
    {"merged", {1, 10, 512}},             // heads concatenated
    {"proj", {1, 10, 512}},               // output projection W_o
};

// q[..., :3, :3, 1] in Python: the first three heads and rows at index 1 of the last axis.
Tensor slice(const Tensor& t) { return t.select(3, 1).narrow(1, 0, 3).narrow(2, 0, 3); }

}  // namespace

int main() {
  RandomParams params(0);
  const nn::Attention layer({.dim = 512, .num_heads = 8}, ParamSource(params, "attn"));
  const Tensor x = Tensor::randn({1, 10, 512}, 1);
  show::shape("x", x, {1, 10, 512});

  size_t next = 0;
  Tensor weights, traced;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) {
      if (next == steps.size() || name != "attn." + steps[next].first) return;  // a module that passes a value on
      const auto& [step, expected] = steps[next++];
      std::printf("\n");
      show::shape(name, tensor, expected);
      if (tensor.rank() == 4) show::values("  heads × rows, at index 1 of the last axis", slice(tensor));
      if (tensor.rank() == 3) show::values("  tokens × channels", tensor);
      if (step == "weights") weights = tensor.clone();
    });
    traced = layer.forward(x);
  }

  std::printf("\n");
  double sum = 0;
  for (int64_t j = 0; j < 10; ++j) sum += weights.data<float>()[j];
  show::check("the trace contains all steps", next == steps.size());
  show::check("a row of the weights sums to 1", std::abs(sum - 1) < 1e-5);

  // Without a trace, a fused kernel computes the same function and never stores [B, H, N, N].
  const Tensor fused = layer.forward(x);
  double max_difference = 0;
  for (int64_t i = 0; i < fused.numel(); ++i) {
    max_difference =
        std::max(max_difference, std::abs(double(fused.data<float>()[i]) - double(traced.data<float>()[i])));
  }
  std::printf("maximum difference between traced and fused: %.2g\n", max_difference);
  show::check("traced and fused results are equal", max_difference < 1e-5);
  show::shape("output", fused, {1, 10, 512});
  return show::mismatches;
}
