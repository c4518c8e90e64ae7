// SPDX-License-Identifier: Apache-2.0
// Gradients of complete models for all parameters and various options.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/precision.h"

namespace vitrail::models {
namespace {

VisionTransformerConfig small() {
  VisionTransformerConfig config;
  config.img_size = {8, 8};
  config.patch_size = {4, 4};
  config.num_classes = 3;
  config.embed_dim = 8;
  config.depth = 2;
  config.num_heads = 2;
  config.mlp_ratio = 2;
  config.qkv_bias = true;
  return config;
}

// The sum of the logits with fixed random weights, in f64.
double weighted_logits(const VisionTransformer& model, const Tensor& images, Tensor* graph = nullptr) {
  const nn::RandomScope scope(3, 5);  // the same dropout in every pass
  const Tensor logits = model.forward(images);
  const Tensor weights = Tensor::randn(logits.shape(), 17, DType::f64), values = logits.detach().contiguous();
  if (graph) *graph = logits;
  double sum = 0;
  for (int64_t i = 0; i < values.numel(); ++i) sum += values.data<double>()[i] * weights.data<double>()[i];
  return sum;
}

// Compares three gradient elements of every parameter with central differences, whose error is about 1e-10 per layer
// (tests/autograd/gradients_test.cpp).
void expect_correct_gradients(const VisionTransformerConfig& config, const Shape& image = {2, 3, 8, 8}) {
  RandomParams params(1, DType::f64);
  VisionTransformer model(config, ParamSource(params));
  const auto parameters = model.named_parameters();
  uint64_t seed = 0;
  for (const nn::NamedTensor& p : parameters) {  // zero-initialised parameters would make other gradients zero
    p.tensor.copy_(Tensor::randn(p.tensor.shape(), ++seed, DType::f64));
    for (int64_t i = 0; i < p.tensor.numel(); ++i) p.tensor.data<double>()[i] *= 0.3;
  }
  model.requires_grad(true);
  model.train();
  const Tensor images = Tensor::randn(image, 4, DType::f64);
  Tensor logits;
  weighted_logits(model, images, &logits);
  autograd::backward(logits, Tensor::randn(logits.shape(), 17, DType::f64));
  for (const nn::NamedTensor& p : model.named_parameters()) {
    const Tensor grad = autograd::grad_of(p.tensor);
    ASSERT_TRUE(grad.defined()) << p.name;
    for (int64_t i = 0; i < p.tensor.numel(); i += std::max<int64_t>(1, p.tensor.numel() / 3)) {
      const autograd::NoGrad scope;
      double& element = p.tensor.data<double>()[i];
      const double kept = element, step = 1e-5;
      element = kept + step;
      const double above = weighted_logits(model, images);
      element = kept - step;
      const double below = weighted_logits(model, images);
      element = kept;
      const double numerical = (above - below) / (2 * step), analytic = grad.contiguous().data<double>()[i];
      EXPECT_NEAR(analytic, numerical, 1e-7 * std::max(1.0, std::abs(numerical))) << p.name << " at " << i;
    }
  }
}

TEST(ModelGradient, OfThePlainModel) { expect_correct_gradients(small()); }

TEST(ModelGradient, WithAveragePoolingAndLayerScale) {
  VisionTransformerConfig config = small();
  config.global_pool = GlobalPool::avg;
  config.class_token = false;
  config.init_values = 0.5;
  expect_correct_gradients(config);
}

TEST(ModelGradient, WithAttentionPooling) {
  VisionTransformerConfig config = small();
  config.global_pool = GlobalPool::map;
  config.attn_pool_num_heads = 4;
  config.attn_pool_mlp_ratio = 1.5;
  config.reg_tokens = 1;
  expect_correct_gradients(config);
  config.pool_include_prefix = true;
  expect_correct_gradients(config);
  config.attn_pool_input_norms = true;
  config.fc_norm = true;
  config.attn_pool_dim = 4;
  config.attn_pool_mlp_ratio = 0;
  expect_correct_gradients(config);
}

TEST(ModelGradient, WithRelativePositionBiasAndWithoutABiasOfK) {
  VisionTransformerConfig config = small();
  config.pos_embed = PositionEmbedding::none;
  config.attn_type = AttentionType::eva;
  config.use_rel_pos_bias = config.use_shared_rel_pos_bias = true;
  config.dynamic_img_size = true;
  expect_correct_gradients(config);
  expect_correct_gradients(config, {2, 3, 12, 8});
  config.rel_pos_interp = nn::RelativePositionResampling::bilinear;
  config.global_pool = GlobalPool::avg;
  expect_correct_gradients(config, {2, 3, 4, 12});
}

TEST(ModelGradient, WithRmsNormAndWithoutBiases) {
  VisionTransformerConfig config = small();
  config.norm_layer = nn::NormLayer::rms_norm;
  config.patch_norm = PatchNorm::post;
  config.qkv_bias = config.proj_bias = false;
  config.mlp_layer = MlpLayer::swiglu;
  config.qk_norm = true;
  expect_correct_gradients(config);
  config.global_pool = GlobalPool::map;
  config.attn_pool_q_proj = config.attn_pool_qkv_bias = false;
  config.attn_pool_mlp_ratio = 0;
  expect_correct_gradients(config);
}

TEST(ModelGradient, WithRegistersQkNormAndSwiGlu) {
  VisionTransformerConfig config = small();
  config.global_pool = GlobalPool::token_avg;
  config.reg_tokens = 2;
  config.qk_norm = true;
  config.mlp_layer = MlpLayer::swiglu;
  config.head_hidden = 5;
  expect_correct_gradients(config);
}

TEST(ModelGradient, WithDistillationTokenAndPostNorm) {
  VisionTransformerConfig config = small();
  config.dist_token = true;
  config.norm_first = false;
  config.patch_norm = PatchNorm::both;
  config.act_layer = kernels::Activation::gelu_tanh;
  expect_correct_gradients(config);
}

TEST(ModelGradient, UnderEveryKindOfDropout) {
  VisionTransformerConfig config = small();
  config.drop_rate = config.pos_drop_rate = config.attn_drop_rate = config.proj_drop_rate = config.drop_path_rate = 0.2;
  config.patch_drop_rate = 0.5;
  config.pre_norm = true;
  expect_correct_gradients(config, {4, 3, 8, 8});
}

TEST(ModelGradient, WithRotaryPositionsOfEachTypeAndPatchDropout) {
  for (const nn::RotaryType type : {nn::RotaryType::cat, nn::RotaryType::dinov3, nn::RotaryType::mixed}) {
    VisionTransformerConfig config = small();
    config.use_rot_pos_emb = true;
    config.rope_type = type;
    config.rope_rotate_half = type == nn::RotaryType::dinov3;
    config.rope_temperature = 10;
    config.patch_drop_rate = 0.5;
    expect_correct_gradients(config);
  }
}

TEST(ModelGradient, WithTheNormsAndBiasesOfEva) {
  VisionTransformerConfig config = small();
  config.attn_type = AttentionType::eva;
  config.scale_attn_inner = config.scale_mlp = true;
  expect_correct_gradients(config);
  config.use_post_norm = true;
  config.swiglu_mlp = true;
  expect_correct_gradients(config);
}

// With a rate near 0 patch dropout keeps all patches, in another order: the mean of their features is the same only if
// each is rotated by its own position.
TEST(PatchDropout, KeepsTheRotaryPositionOfEachPatch) {
  for (const nn::RotaryType type : {nn::RotaryType::cat, nn::RotaryType::mixed}) {
    VisionTransformerConfig config = small();
    config.pos_embed = PositionEmbedding::none;
    config.use_rot_pos_emb = true;
    config.rope_type = type;
    config.global_pool = GlobalPool::avg;
    RandomParams params(1, DType::f64);
    VisionTransformer model(config, ParamSource(params));
    for (const nn::NamedTensor& p : model.named_parameters()) p.tensor.copy_(Tensor::randn(p.tensor.shape(), 3));
    const Tensor images = Tensor::randn({4, 3, 8, 8}, 4, DType::f64), wanted = model.forward(images);
    model.drop_patches_in_training(1e-17);
    model.train();
    const nn::RandomScope scope(3, 5);
    EXPECT_TRUE(testing::close(model.forward(images), wanted, 1e-9));
  }
}

TEST(ModelGradient, AtAnotherImageSize) {
  VisionTransformerConfig config = small();
  config.dynamic_img_size = true;
  expect_correct_gradients(config, {2, 3, 12, 16});
  config.pos_interp.antialias = false;
  expect_correct_gradients(config, {2, 3, 12, 4});
}

// In training the last block computes only the tokens that the heads read; the logits are the same.
TEST(TrainingPass, GivesTheLogitsOfInference) {
  VisionTransformerConfig distilled = small();
  distilled.dist_token = true;
  distilled.norm_first = false;
  for (const VisionTransformerConfig& config : {small(), distilled}) {
    RandomParams params(1, DType::f64);
    VisionTransformer model(config, ParamSource(params));
    const Tensor images = Tensor::randn({3, 3, 8, 8}, 4, DType::f64), wanted = model.forward(images);
    model.train();
    EXPECT_TRUE(testing::close(model.forward(images), wanted, 1e-12));
  }
}

// The parameters' gradients of one training pass in f32.
std::vector<Tensor> gradients(const VisionTransformerConfig& config, bool checkpoint, DType precision = DType::f32) {
  RandomParams params(1);
  VisionTransformer model(config, ParamSource(params));
  model.requires_grad(true);
  model.train();
  model.checkpoint_blocks(checkpoint);
  Tensor logits;
  {
    const nn::RandomScope scope(3, 5);
    const ops::MixedPrecision mixed(precision);
    logits = model.forward(Tensor::randn({4, 3, 8, 8}, 4));
  }
  autograd::backward(logits, Tensor::randn(logits.shape(), 17).to(logits.dtype()));
  std::vector<Tensor> grads;
  for (const nn::NamedTensor& p : model.named_parameters()) grads.push_back(autograd::grad_of(p.tensor));
  return grads;
}

TEST(CheckpointedBlocks, GiveTheSameGradientsBitForBit) {
  VisionTransformerConfig config = small();
  config.proj_drop_rate = config.drop_path_rate = 0.3;  // recomputation repeats the draws
  config.use_rel_pos_bias = config.use_shared_rel_pos_bias = true;
  for (const DType precision : {DType::f32, DType::bf16}) {
    const auto plain = gradients(config, false, precision), checkpointed = gradients(config, true, precision);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(testing::close(checkpointed[i], plain[i], 0)) << i;
  }
}

// bf16 has 8 significant bits, so a product has a relative error of 2^-9; errors accumulate over the layers.
TEST(MixedPrecision, GradientsAreF32AndCloseInDirection) {
  const auto exact = gradients(small(), false), mixed = gradients(small(), false, DType::bf16);
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(mixed[i].dtype(), DType::f32);
    double dot = 0, exact_norm = 0, mixed_norm = 0;
    for (int64_t e = 0; e < exact[i].numel(); ++e) {
      const double a = exact[i].contiguous().data<float>()[e], b = mixed[i].contiguous().data<float>()[e];
      dot += a * b;
      exact_norm += a * a;
      mixed_norm += b * b;
    }
    if (exact_norm == 0) continue;
    EXPECT_GT(dot / std::sqrt(exact_norm * mixed_norm), 0.99) << i;
    EXPECT_NEAR(std::sqrt(mixed_norm / exact_norm), 1, 0.05) << i;
  }
}

}  // namespace
}  // namespace vitrail::models
