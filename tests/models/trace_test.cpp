// SPDX-License-Identifier: Apache-2.0
// The trace of a whole model against the forward hooks of its reference implementation (tools/golden/trace_values.py).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/traced_names.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {
namespace {

struct TracedValue {
  Tensor tensor;
  size_t at;  // its place in the trace
};
using TracedValues = std::map<std::string, TracedValue>;

constexpr int64_t kSamples = 8;

TracedValues trace_of(const VisionTransformer& model, const Tensor& images) {
  TracedValues values;
  size_t at = 0;
  const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { values[name] = {tensor, at++}; });
  model.forward(images);
  return values;
}

// Mean, mean square, mean with hashed signs, and kSamples elements.
Tensor fingerprint(const Tensor& tensor) {
  const Tensor x = tensor.to(DType::f64).contiguous();
  const double* data = x.data<double>();
  const int64_t n = x.numel();
  const Tensor result = Tensor::zeros({3 + kSamples}, DType::f64);
  double* out = result.data<double>();
  for (int64_t i = 0; i < n; ++i) {
    const auto hashed = static_cast<uint32_t>(static_cast<uint64_t>(i) * 2654435761U);
    out[0] += data[i] / static_cast<double>(n);
    out[1] += data[i] * data[i] / static_cast<double>(n);
    out[2] += (hashed >> 31 ? -data[i] : data[i]) / static_cast<double>(n);
  }
  for (int64_t i = 0; i < kSamples; ++i) out[3 + i] = data[i * (n - 1) / (kSamples - 1)];
  return result;
}

// The traced value that `name` means; undefined if there is none.
TracedValue find(const TracedValues& values, const std::string& name, const weights::KeyMap& own) {
  for (const TracedName& traced : traced_names(name, &own)) {
    if (const auto found = values.find(traced.name); found != values.end())
      return {traced.of(found->second.tensor), found->second.at};
  }
  return {};
}

// timm's patch_embed keeps the grid [B, h, w, C] where images of other sizes are allowed; the trace has [B, h·w, C].
Shape shape_of(std::vector<int64_t> extents, int rank) {
  if (extents.size() == 4 && rank == 3) {
    extents[1] *= extents[2];
    extents.erase(extents.begin() + 2);
  }
  return Shape(std::span<const int64_t>(extents));
}

// `tolerance` is relative to the root mean square of each tensor.
void expect_hooks(const testing::Golden& golden, const TracedValues& values, const weights::KeyMap& own,
                  double tolerance) {
  const auto config = nlohmann::json::parse(golden.config);
  const Tensor expected = golden["values"].to(DType::f64);
  ASSERT_GT(config["names"].size(), 15u);
  const bool timm = own.name().starts_with("timm");  // other libraries' modules are parts of ours
  size_t last = 0;
  for (size_t i = 0; i < config["names"].size(); ++i) {
    const std::string name = config["names"][i];
    const auto [value, at] = find(values, name, own);
    if (!value.defined()) {
      ADD_FAILURE() << name << " has no value";
      continue;
    }
    if (timm) {
      EXPECT_GE(at, last) << name << " runs after the modules above it";
    }
    last = at;
    EXPECT_EQ(value.shape(), shape_of(config["shapes"][i], value.rank())) << name;
    const Tensor want = expected.select(0, static_cast<int64_t>(i));
    const double square = want.select(0, 1).item<double>(), scale = std::sqrt(square);
    const Tensor got = fingerprint(value);
    got.data<double>()[1] = std::sqrt(got.data<double>()[1]);
    const Tensor root = want.clone();
    root.data<double>()[1] = scale;
    EXPECT_TRUE(testing::close(got, root, tolerance * scale, tolerance)) << name;
  }
}

class TraceOfFixture : public ::testing::TestWithParam<std::string> {};

// f32 has errors of at most 1e-6 of a tensor's root mean square in these models of two blocks, and 2e-5 in DeiT-Tiny.
TEST_P(TraceOfFixture, EveryModuleHasTheValueOfAForwardHook) {
  const testing::Golden golden = testing::read_golden(testing::fixture("trace/" + GetParam() + ".safetensors"));
  const std::string name = nlohmann::json::parse(golden.config)["model"];
  const OpenedModel opened = open_model(testing::model_fixture(name));
  expect_hooks(golden, trace_of(build_model(opened), testing::input_of(name)), opened.key_map, 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TraceOfFixture,
                         ::testing::Values("timm_token", "timm_avg", "timm_num_classes_0", "timm_reg_tokens",
                                           "timm_pre_norm", "timm_distilled", "timm_qk_norm", "timm_layer_scale",
                                           "timm_token_fc_norm", "timm_no_pool", "timm_swiglu", "timm_patch_norm_post",
                                           "timm_dinov3", "timm_eva02_clip_base", "timm_rope_mixed", "timm_pe_core",
                                           "hf_vit", "hf_deit_teacher", "hf_dinov2", "hf_dinov2_swiglu",
                                           "hf_dinov2_registers", "seed_003", "seed_004"),
                         [](const auto& info) { return testing::test_name(info.param); });

// Every module of DeiT-Tiny, by timm's names and by those of transformers.
TEST(TraceOfDeitTiny, EveryModuleHasTheValueOfAForwardHook) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  const testing::Golden golden = testing::read_golden(testing::fixture("trace/deit_tiny.safetensors"));
  const auto config = nlohmann::json::parse(golden.config);
  const OpenedModel opened = open_model(assets / config["assets"].get<std::string>());
  const auto transform = infer::transform_of(opened.config.preprocessing, "deit");
  const Tensor image = image::apply(image::read_image(assets / config["image"].get<std::string>()), transform);
  const TracedValues values = trace_of(build_model(opened), image.unsqueeze(0));
  expect_hooks(golden, values, opened.key_map, 5e-5);
  expect_hooks(testing::read_golden(testing::fixture("trace/deit_tiny_hugging_face.safetensors")), values,
               opened.key_map, 5e-5);
}

TEST(TracedNames, NamesOfOlderTransformersMeanTheSameValues) {
  const auto meaning = [](const std::string& name) { return traced_names(name).at(1); };
  EXPECT_EQ(meaning("vit.encoder.layer.3.attention.attention.key").name, "blocks.3.attn.qkv");
  EXPECT_EQ(meaning("vit.encoder.layer.3.attention.attention.key").part, 1);
  EXPECT_EQ(meaning("vit.encoder.layer.3.attention.attention").name, "blocks.3.attn.merged");
  EXPECT_EQ(meaning("vit.encoder.layer.3.intermediate.intermediate_act_fn").name, "blocks.3.mlp.act");
  EXPECT_EQ(meaning("vit.encoder.layer.3.output.dense").name, "blocks.3.mlp.fc2");
  EXPECT_EQ(meaning("vit.encoder.layer.3.output").name, "blocks.3");
  EXPECT_EQ(meaning("blocks.3.attention_norm").name, "blocks.3.norm1");
  EXPECT_EQ(traced_names("no.such.module").size(), 1u);
}

}  // namespace
}  // namespace vitrail::models
