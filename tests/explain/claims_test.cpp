// SPDX-License-Identifier: Apache-2.0
// Each claim of the learning page has an assertion here, which holds for models of all kinds and fails for a wrong
// value.
#include "vitrail/explain/claims_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/support/claim_assertions.h"
#include "tests/support/learning_page.h"
#include "tests/support/paths.h"

namespace vitrail::explain {
namespace {

using testing::ClaimAssertions;
using testing::fixture;
using testing::PageOfModel;
using Json = nlohmann::ordered_json;

bool is_near(const Json& value, double expected, double tolerance) {
  return value.is_number() && std::fabs(value.get<double>() - expected) <= tolerance;
}
double number(const Json& values, const char* name) { return values.at(name).get<double>(); }

const ClaimAssertions& assertions() {
  static const ClaimAssertions rows{
      {"conv_is_linear", {[](const Json& v) { return is_near(v["difference"], 0, 1e-4); }, {{"difference", 0.1}}}},
      {"patch_count",
       {[](const Json& v) {
          return v["rows"].get<int64_t>() * v["columns"].get<int64_t>() == v["patches"] &&
                 v["patches"].get<int64_t>() + v["prefix"].get<int64_t>() == v["tokens"];
        },
        {{"tokens", 1}}}},
      {"sequence_shape",
       {[](const Json& v) { return v["rows"].get<int64_t>() * v["columns"].get<int64_t>() == v["patches"]; },
        {{"rows", 99}}}},
      {"sinusoid_positions", {[](const Json& v) { return is_near(v["difference"], 0, 1e-5); }, {{"difference", 0.1}}}},
      {"learned_positions",
       {[](const Json& v) { return is_near(v["near"], 0, 1.0001) && is_near(v["far"], 0, 1.0001); }, {{"near", 2}}}},
      {"layer_norm",
       {[](const Json& v) { return is_near(v["mean"], 0, 1e-5) && is_near(v["variance"], 1, 0.02); },
        {{"variance", 0.5}}}},
      {"qkv_layouts",
       {[](const Json& v) {
          return v["mismatches"] == 0 && v["width3"] == 3 * v["heads"].get<int64_t>() * v["head_dim"].get<int64_t>();
        },
        {{"mismatches", 1}}}},
      {"scale_variance",
       {[](const Json& v) {
          const double scale = number(v, "scale");
          return is_near(v["after"], number(v, "before") * scale * scale, 1e-4 * number(v, "after"));
        },
        {{"scale", 0.9}}}},
      {"softmax_rows", {[](const Json& v) { return is_near(v["deviation"], 0, 2e-6); }, {{"deviation", 0.1}}}},
      {"mask_excludes",
       {[](const Json& v) { return v["weight"] == 0.0 && is_near(v["sum"], 1, 2e-6); }, {{"weight", 0.1}}}},
      {"heads_differ",
       {[](const Json& v) {
          return number(v, "min") > 0 && number(v, "min") <= number(v, "max") && number(v, "max") < 1;
        },
        {{"max", 1.0}}}},
      {"merge_restores",
       {[](const Json& v) { return v["heads"].get<int64_t>() * v["head_dim"].get<int64_t>() == v["width"]; },
        {{"width", 1}}}},
      {"mlp_widths",
       {[](const Json& v) {
          const int64_t weights = v["width"].get<int64_t>() * v["hidden"].get<int64_t>();
          return v["parameters"] == weights || v["parameters"] == weights + v["hidden"].get<int64_t>();
        },
        {{"parameters", 7}}}},
      {"mlp_is_patch", {[](const Json& v) { return v["hidden"] == v["patch"]; }, {{"hidden", 1}}}},
      {"mlp_per_token", {[](const Json& v) { return is_near(v["difference"], 0, 1e-4); }, {{"difference", 0.1}}}},
      {"residual_keeps",
       {[](const Json& v) { return is_near(v["difference"], 0, 1e-3) && number(v, "share") > 0; },
        {{"difference", 0.1}}}},
      {"blocks_differ", {[](const Json& v) { return number(v, "min") > 0; }, {{"min", 0.0}}}},
      {"fc1_spread",
       {[](const Json& v) { return number(v, "std") > 0 && number(v, "xavier") > 0 && number(v, "bias_std") >= 0; },
        {{"std", 0.0}}}},
      {"parameter_count",
       {[](const Json& v) { return v["parameters"].get<int64_t>() > v["fc1"].get<int64_t>(); }, {{"parameters", 0}}}},
      {"class_head", {[](const Json& v) { return is_near(v["difference"], 0, 1e-4); }, {{"difference", 0.1}}}},
      {"probabilities_sum", {[](const Json& v) { return is_near(v["sum"], 1, 1e-9); }, {{"sum", 0.9}}}},
      {"text_logits",
       {[](const Json& v) { return number(v, "scale") > 0 && is_near(v["difference"], 0, 1e-3); },
        {{"difference", 0.1}}}},
      {"completeness",
       {[](const Json& v) {
          return is_near(v["sum"], number(v, "difference"), 0.05 + 0.2 * std::fabs(number(v, "sum")));
        },
        {{"sum", 1e3}}}},
      {"finite_difference",
       {[](const Json& v) {
          return is_near(v["numerical"], number(v, "analytic"), 0.02 * std::fabs(number(v, "analytic")) + 2e-3);
        },
        {{"numerical", 1e3}}}},
  };
  return rows;
}

// A model with random weights of a configuration.
Json claims_of(const models::VisionTransformerConfig& vit) {
  RandomParams random(0, DType::f32, Device::cpu);
  const models::VisionTransformer model(vit, ParamSource(random));
  const Tensor images = Tensor::randn({1, vit.in_chans, vit.img_size[0], vit.img_size[1]}, 3);
  const models::ModelConfig config{.vit = vit};
  return measured_claims({config, model, run_forward(model, images), nullptr, nullptr});
}

TEST(Claims, EachHasAnAssertionAndASentence) {
  const PageOfModel page(fixture("models/timm_token"));
  const Json texts = Json::parse(page.element("texts")).at("en");
  for (const Claim& claim : claims()) {
    EXPECT_TRUE(assertions().contains(claim.id)) << claim.id;
    EXPECT_TRUE(texts.contains(std::string("claim.") + claim.id)) << claim.id;
  }
  EXPECT_EQ(assertions().size(), claims().size());
}

TEST(Claims, HoldForModelsOfAllKinds) {
  std::set<std::string> seen;
  for (const char* name : {"timm_token", "timm_avg", "timm_distilled", "timm_reg_tokens", "hf_clip", "hf_beit",
                           "dinov2_hub_registers", "hf_dinov3", "seed_000", "seed_003", "seed_004"}) {
    SCOPED_TRACE(name);
    const PageOfModel page(fixture(std::string("models/") + name));
    seen.merge(testing::expect_claims(assertions(), page.manifest["claims"]));
    EXPECT_EQ(page.page.claims, page.manifest["claims"].dump());
  }
  const models::VisionTransformerConfig sinusoidal{.img_size = {16, 16},
                                                   .patch_size = {4, 4},
                                                   .num_classes = 5,
                                                   .embed_dim = 24,
                                                   .depth = 2,
                                                   .num_heads = 3,
                                                   .mlp_hidden = 4,
                                                   .pos_embed = models::PositionEmbedding::sinusoidal};
  seen.merge(testing::expect_claims(assertions(), claims_of(sinusoidal)));
  const DualModel dual(fixture("models/open_clip"), {.threads = 1});
  const image::Image photo = image::make_image(20, 20, 3);
  const std::vector<std::string> texts{"a cat", "a dog"};
  const models::OpenedModel opened = models::open_model(fixture("models/open_clip"));
  const LearningPage page =
      explain(dual.images(), opened,
              {.photo = photo, .texts = compare_texts(dual, photo, texts, dual.embed_labels(texts))}, {});
  seen.merge(testing::expect_claims(assertions(), Json::parse(page.claims)));
  for (const Claim& claim : claims()) EXPECT_TRUE(seen.contains(claim.id)) << claim.id << " is about no model here";
}

}  // namespace
}  // namespace vitrail::explain
