// SPDX-License-Identifier: Apache-2.0
// Every step of softmax(q kᵀ / √d) v with its shape and values: Attention alone, on 10 random tokens (document 001).
#include "examples/show.h"
#include "vitrail/nn/attention.h"
#include "vitrail/nn/trace.h"

namespace {

using namespace vitrail;

// B = 1 sample, N = 10 tokens, C = 512 channels in H = 8 heads of d = 64.
const std::vector<std::pair<std::string, Shape>> steps{
    {"q", {1, 8, 10, 64}},             // x W_q, a head after another
    {"k", {1, 8, 10, 64}},             //
    {"v", {1, 8, 10, 64}},             //
    {"k_transposed", {1, 8, 64, 10}},  // so that q kᵀ is a product of matrices per head
    {"scores", {1, 8, 10, 10}},        // q kᵀ / √64: how much token i asks for token j
    {"weights", {1, 8, 10, 10}},       // softmax over j: each row sums to 1
    {"context", {1, 8, 10, 64}},       // weights · v: a mean of the values, weighted
    {"merged", {1, 10, 512}},          // the heads side by side again
    {"proj", {1, 10, 512}},            // W_o mixes them
};

// Three heads × three rows at index 1 of the last axis: what document 001 prints as q[..., :3, :3, 1].
Tensor slice(const Tensor& t) {
  if (t.rank() < 4) return t;
  return t.select(3, 1).narrow(1, 0, 3).narrow(2, 0, 3);
}

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
      const auto& [step, expected] = steps.at(next++);
      std::printf("\n");
      show::check("step " + std::to_string(next) + " is " + name, name == "attn." + step);
      show::shape(name, tensor, expected);
      show::values(tensor.rank() == 4 ? "  heads × rows, at index 1 of the last axis" : "  tokens × channels",
                   slice(tensor));
      if (step == "weights") weights = tensor.clone();
    });
    traced = layer.forward(x);
  }

  std::printf("\n");
  double sum = 0;
  for (int64_t j = 0; j < 10; ++j) sum += weights.data<float>()[j];
  show::check("all steps were seen", next == steps.size());
  show::check("a row of the weights sums to 1", std::abs(sum - 1) < 1e-5);

  // Without a trace the same mathematics runs fused: [B, H, N, N] is never stored.
  const Tensor fused = layer.forward(x);
  double worst = 0;
  for (int64_t i = 0; i < fused.numel(); ++i) {
    worst = std::max(worst, std::abs(double(fused.data<float>()[i]) - double(traced.data<float>()[i])));
  }
  std::printf("largest difference between traced and fused: %.2g\n", worst);
  show::check("traced and fused agree", worst < 1e-5);
  show::shape("output", fused, {1, 10, 512});
  return show::mismatches;
}
