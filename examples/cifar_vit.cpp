// SPDX-License-Identifier: Apache-2.0
// The layers of a ViT for CIFAR-10 (32 × 32 images, patches of 4 × 4, width 384), the functions of the module system
// (named parameters, training and evaluation mode, conversion), and gradients through one residual branch.
#include "examples/show.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/ops/residual_add.h"

namespace {

using namespace vitrail;

constexpr int64_t kBatch = 8;                    // any batch size works
constexpr int64_t kDim = 384, kTokens = 64 + 1;  // 8 × 8 patches of 4 × 4 pixels, and CLS

void layers(const ParamSource& params) {
  const nn::PatchEmbed embed({.img_size = {32, 32}, .patch_size = {4, 4}, .embed_dim = kDim}, params.child("embed"));
  const nn::Attention attention({.dim = kDim, .num_heads = 8}, params.child("attn"));  // heads of 384 / 8 = 48
  const nn::Mlp mlp({.in_features = kDim}, params.child("mlp"));                       // hidden: 4 · 384 = 1536
  const nn::Block block({.attention = {.dim = kDim, .num_heads = 8}, .norm_eps = 1e-5}, params.child("block"));

  show::shape("PatchEmbedding", embed.forward(Tensor::randn({kBatch, 3, 32, 32}, 1)), {kBatch, 64, kDim});
  const Tensor x = Tensor::randn({kBatch, kTokens, kDim}, 2);
  show::shape("MultiHeadAttention", attention.forward(x), {kBatch, kTokens, kDim});
  show::shape("  attention weights", attention.forward(x, {.need_weights = true}).weights,
              {kBatch, 8, kTokens, kTokens});
  show::shape("  qkv.weight: q, k and v in one matrix", attention.parameter("qkv.weight"), {3 * kDim, kDim});
  show::shape("MLP", mlp.forward(x), {kBatch, kTokens, kDim});
  show::shape("  fc1.weight", mlp.parameter("fc1.weight"), {4 * kDim, kDim});
  show::shape("TransformerBlock", block.forward(x), {kBatch, kTokens, kDim});
}

// nn::Module offers what torch.nn.Module offers: named parameters, train() and eval(), to().
void module_system() {
  models::VisionTransformerConfig config = models::find_architecture("cifar_vit_d384")->config;
  config.depth = 2;  // the full model has 12
  config.proj_drop_rate = 0.1;
  RandomParams params(0);
  models::VisionTransformer vit(config, ParamSource(params));
  std::printf("%zu parameter tensors with %lld values; the first:\n", vit.named_parameters().size(),
              static_cast<long long>(vit.num_parameters()));
  for (size_t i = 0; i < 6; ++i) {
    const nn::NamedTensor p = vit.named_parameters()[i];
    std::printf("  %-28s %s\n", p.name.c_str(), p.tensor.shape().to_string().c_str());
  }
  const Tensor images = Tensor::randn({2, 3, 32, 32}, 3);
  const auto first_logit = [&] { return vit.forward(images).data<float>()[0]; };
  show::shape("logits", vit.forward(images), {2, 10});
  const float eval = first_logit();
  vit.train();  // enables dropout
  const float train = first_logit();
  vit.eval();
  show::check("train() changes the result, eval() restores it", train != eval && first_logit() == eval);
  vit.to(DType::f64);
  show::check("to() converts every parameter", vit.parameter("head.weight").dtype() == DType::f64);
}

// Backpropagation through x + mlp(norm(x)): each parameter gets its gradient.
void gradients() {
  RandomParams params(0);
  nn::LayerNorm norm(kDim, 1e-5, ParamSource(params, "norm2"));
  nn::Mlp mlp({.in_features = kDim}, ParamSource(params, "mlp"));
  norm.requires_grad(true);
  mlp.requires_grad(true);
  const Tensor x = Tensor::randn({4, kTokens, kDim}, 4);
  const Tensor out = ops::residual_add(x, mlp.forward(norm.forward(x)));
  autograd::backward(out,
                     Tensor::full(out.shape(), 1.0 / static_cast<double>(out.numel())));  // the gradient of the mean
  for (const nn::Module* module : {static_cast<nn::Module*>(&norm), static_cast<nn::Module*>(&mlp)}) {
    for (const nn::NamedTensor& p : module->named_parameters()) {
      show::shape("gradient of " + module->path() + "." + p.name, autograd::grad_of(p.tensor), p.tensor.shape());
    }
  }
  // All rows add the same bias of 384 values, so d mean / d bias[i] = 1 / 384.
  const double slope = autograd::grad_of(mlp.parameter("fc2.bias")).data<float>()[0];
  show::check("d mean / d fc2.bias is 1 / 384", std::abs(slope * kDim - 1) < 1e-4);
}

}  // namespace

int main() {
  RandomParams params(0);
  layers(ParamSource(params));
  std::printf("\n");
  module_system();
  std::printf("\n");
  gradients();
  return show::mismatches;
}
