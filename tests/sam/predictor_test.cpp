// SPDX-License-Identifier: Apache-2.0
// The predictor against segment_anything's and transformers': fixtures of tools/golden/sam.py.
#include "vitrail/sam/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::sam {
namespace {

using testing::Golden;

struct Fixture {
  std::filesystem::path folder;
  Golden golden;
  image::Image image;
  std::vector<Prompt> prompts;
};

Fixture fixture_of(const std::string& name) {
  Fixture fixture{testing::fixture("sam/" + name), {}, {}, {}};
  fixture.golden = testing::read_golden(fixture.folder / "golden.safetensors");
  const Tensor pixels = fixture.golden["image"].contiguous();
  fixture.image = {pixels.size(1), pixels.size(0), 3, {}};
  fixture.image.pixels.assign(pixels.data<uint8_t>(), pixels.data<uint8_t>() + pixels.numel());
  const auto config = nlohmann::json::parse(fixture.golden.config);
  for (const auto& entry : config["prompts"]) {
    Prompt prompt;
    for (const auto& point : entry.value("points", nlohmann::json::array())) {
      prompt.points.push_back({point[0], point[1], static_cast<int>(point[2].get<double>())});
    }
    if (entry.contains("box")) prompt.box = Box{entry["box"][0], entry["box"][1], entry["box"][2], entry["box"][3]};
    const std::string mask = "mask_" + std::to_string(fixture.prompts.size());
    if (fixture.golden.has(mask)) prompt.mask_logits = fixture.golden[mask];
    prompt.multimask = entry["multimask"];
    fixture.prompts.push_back(prompt);
  }
  return fixture;
}

std::filesystem::path model_of(const std::string& name) {
  const auto folder = testing::fixture("sam/" + name);
  for (const char* file : {"model.pth", "model.safetensors"}) {
    if (std::filesystem::exists(folder / file)) return folder / file;
  }
  return folder;
}

double largest(const Tensor& x) {
  const Tensor dense = x.contiguous();
  double value = 0;
  for (int64_t i = 0; i < dense.numel(); ++i) value = std::max<double>(value, std::abs(dense.data<float>()[i]));
  return value;
}

// Both are computed in fp32: a sum of n ≤ 2,304 products rounds to √n · 2⁻²⁴ = 3e-6 of its magnitude, over some ten
// layers in a row.
constexpr double kTolerance = 1e-4;

// The signs are those of the reference wherever its logits are not nearly 0.
void expect_signs(const Tensor& logits, const Tensor& signs) {
  const Tensor got = logits.contiguous(), want = signs.contiguous();
  ASSERT_EQ(got.shape(), want.shape());
  int64_t wrong = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int8_t sign = want.data<int8_t>()[i];
    wrong += sign != 0 && (got.data<float>()[i] > 0) != (sign > 0);
  }
  EXPECT_EQ(wrong, 0) << "of " << got.numel();
}

class SamParity : public ::testing::TestWithParam<std::string> {};

TEST_P(SamParity, EmbeddingMasksAndScoresEqualTheReference) {
  const Fixture fixture = fixture_of(GetParam());
  const Predictor predictor(model_of(GetParam()));
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  const Tensor& reference = fixture.golden["embedding"];
  EXPECT_TRUE(testing::close(embedding.values, reference, kTolerance * largest(reference)));
  const std::vector<Masks> all = predictor.predict(embedding, fixture.prompts);
  ASSERT_EQ(all.size(), fixture.prompts.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string number = std::to_string(i);
    SCOPED_TRACE("prompt " + number);
    const Tensor &logits = fixture.golden["logits_" + number], &iou = fixture.golden["iou_" + number];
    EXPECT_TRUE(testing::close(all[i].logits, logits, kTolerance * largest(logits)));
    EXPECT_TRUE(testing::close(Tensor::from<float>({iou.size(0)}, all[i].iou), iou, kTolerance * largest(iou)));
    if (!fixture.golden.has("signs_" + number)) continue;
    const Tensor& signs = fixture.golden["signs_" + number];
    for (int64_t m = 0; m < signs.size(0); ++m) {
      expect_signs(predictor.image_logits(all[i].logits.select(0, m), embedding.width, embedding.height),
                   signs.select(0, m));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SamParity,
                         ::testing::Values("padded_windows", "exact_windows", "odd_width", "head_dim_14", "head_dim_32",
                                           "global", "windows", "no_qkv_bias", "transformers"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace vitrail::sam
