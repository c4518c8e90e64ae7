// SPDX-License-Identifier: Apache-2.0
// The predictor against segment_anything's and transformers': fixtures of tools/golden/sam.py.
#include "vitrail/sam/predictor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/error.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::sam {
namespace {

using testing::largest;
using testing::sam_fixture;
using testing::SamFixture;

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

// |got − want| / |want|, in the L2 norm.
class SamParity : public ::testing::TestWithParam<std::string> {};

TEST_P(SamParity, EmbeddingMasksAndScoresEqualTheReference) {
  const SamFixture fixture = sam_fixture(GetParam());
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  const Tensor& reference = fixture.golden["embedding"];
  EXPECT_TRUE(testing::close(embedding.values, reference, testing::kSamTolerance * largest(reference)));
  const std::vector<Masks> all = predictor.predict(embedding, fixture.prompts);
  ASSERT_EQ(all.size(), fixture.prompts.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string number = std::to_string(i);
    SCOPED_TRACE("prompt " + number);
    const Tensor &logits = fixture.golden["logits_" + number], &iou = fixture.golden["iou_" + number];
    EXPECT_TRUE(testing::close(all[i].logits, logits, testing::kSamTolerance * largest(logits)));
    EXPECT_TRUE(
        testing::close(Tensor::from<float>({iou.size(0)}, all[i].iou), iou, testing::kSamTolerance * largest(iou)));
    ASSERT_EQ(all[i].object_score.has_value(), fixture.golden.has("object_score_" + number));
    if (all[i].object_score) {
      const Tensor& score = fixture.golden["object_score_" + number];
      EXPECT_NEAR(*all[i].object_score, *score.data<float>(), testing::kSamTolerance * std::abs(*score.data<float>()));
    }
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
                                           "global", "windows", "no_qkv_bias", "transformers", "high_quality",
                                           "transformers_high_quality", "mobile", "mobile_high_quality", "medsam",
                                           "sam2", "sam2_authors"),
                         [](const auto& info) { return info.param; });

// timm's samvit.  Its ε of layer norms is not that of segment-anything, so that the same tensors under the official
// names have other embeddings.
TEST(Predictor, AnImageEncoderAloneHasTheEmbeddingsOfTimmAndNoMasks) {
  const SamFixture fixture = sam_fixture("timm_encoder");
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  const Tensor& reference = fixture.golden["embedding"];
  const double tolerance = testing::kSamTolerance * largest(reference);
  EXPECT_TRUE(testing::close(embedding.values, reference, tolerance));
  EXPECT_EQ(predictor.embedding_shape(), reference.shape());
  EXPECT_FALSE(predictor.has_decoder());
  const Prompt point{.points = {{3, 4, 1}}};
  const std::string error = testing::error_of([&] { static_cast<void>(predictor.predict(embedding, point)); });
  EXPECT_TRUE(testing::contains(error, "a mask decoder, which makes masks of prompts, got an image encoder alone"))
      << error;

  const std::filesystem::path official = testing::scratch_folder() / "official.safetensors";
  const models::Sam sam = models::load_sam(fixture.model);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& parameter : sam.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  weights::write_safetensors(official, tensors);
  EXPECT_FALSE(testing::close(Predictor(official).embed(fixture.image).values, reference, tolerance));
  EXPECT_NE(models::sam_encoder_digest(official), models::sam_encoder_digest(fixture.model));
}

// One prompt among others of any kind, in any order, gives what it gives alone: batches are independent samples.
TEST(Predictor, BatchesEqualSinglePrompts) {
  const SamFixture fixture = sam_fixture("padded_windows");
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  std::vector<Prompt> prompts;
  for (int i = 0; i < 20; ++i) prompts.push_back(fixture.prompts[i * 7 % fixture.prompts.size()]);
  const std::vector<Masks> all = predictor.predict(embedding, prompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Masks alone = predictor.predict(embedding, prompts[i]);
    EXPECT_EQ(all[i].logits.shape(), (Shape{prompts[i].multimask ? 3 : 1, 40, 40}));
    EXPECT_TRUE(testing::close(all[i].logits, alone.logits, 1e-5 * largest(alone.logits))) << i;
  }
  EXPECT_TRUE(predictor.predict(embedding, std::span<const Prompt>()).empty());
}

std::string refusal(const Predictor& predictor, const ImageEmbedding& embedding, const Prompt& prompt) {
  return testing::error_of([&] { predictor.predict(embedding, prompt); });
}

// An embedding that was read from a file has no projections.
TEST(Predictor, ComputesMissingProjections) {
  for (const char* name : {"padded_windows", "high_quality", "sam2"}) {
    const SamFixture fixture = sam_fixture(name);
    const Predictor predictor(fixture.model);
    const ImageEmbedding embedding = predictor.embed(fixture.image);
    EXPECT_TRUE(embedding.projections.defined());
    ImageEmbedding read{.values = embedding.values,
                        .width = embedding.width,
                        .height = embedding.height,
                        .features = embedding.features};
    const std::vector<Masks> expected = predictor.predict(embedding, fixture.prompts);
    for (const size_t count : {size_t{1}, fixture.prompts.size()}) {
      const std::vector<Masks> got = predictor.predict(read, std::span(fixture.prompts).first(count));
      for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(testing::close(got[i].logits, expected[i].logits, 1e-5 * largest(expected[i].logits))) << i;
      }
    }
    ImageEmbedding other = read;
    other.projections = Tensor::zeros({3, 4, 4});
    EXPECT_TRUE(testing::contains(refusal(predictor, other, fixture.prompts[0]), "got [3, 4, 4]"));
    other = read;
    other.decoder_input = Tensor::zeros({4, 4, 5});
    EXPECT_TRUE(testing::contains(refusal(predictor, other, fixture.prompts[0]), "got [4, 4, 5]"));
    other = embedding;  // projections alone are no use
    other.decoder_input = {};
    EXPECT_TRUE(testing::close(predictor.predict(other, fixture.prompts[0]).logits, expected[0].logits,
                               1e-5 * largest(expected[0].logits)));
  }
}

TEST(Predictor, RunsInSeveralThreadsAtOnce) {
  const SamFixture fixture = sam_fixture("windows");
  const Predictor predictor(fixture.model);
  std::vector<Masks> masks(4);
  std::vector<std::thread> threads;
  for (Masks& result : masks) {
    threads.emplace_back([&] { result = predictor.predict(predictor.embed(fixture.image), fixture.prompts[0]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Masks& result : masks) EXPECT_TRUE(testing::close(result.logits, masks[0].logits, 0));
}

// Values of a row are rounded to steps of a hundredth of its largest one, which is about 3 standard deviations: an
// error of 1 % for each product, of some ten in a row.
TEST(Predictor, EncodesInLowerPrecisions) {
  for (const char* name : {"padded_windows", "mobile", "sam2"}) {
    const SamFixture fixture = sam_fixture(name);
    const Tensor exact = Predictor(fixture.model).embed(fixture.image).values;
    for (const auto precision : {kernels::Precision::half, kernels::Precision::int8}) {
      SCOPED_TRACE(str(name, " in ", kernels::name_of(precision)));
      const Predictor predictor(fixture.model, {.precision = precision});
      const ImageEmbedding embedding = predictor.embed(fixture.image);
      const double error = testing::relative_error(embedding.values, exact);
      EXPECT_GT(error, 0);
      EXPECT_LT(error, 0.1);
      EXPECT_TRUE(testing::close(predictor.predict(embedding, fixture.prompts[0]).logits,
                                 Predictor(fixture.model).predict(embedding, fixture.prompts[0]).logits, 0));
    }
  }
}

TEST(Predictor, NeedsTheFeaturesOfHqSam) {
  const SamFixture fixture = sam_fixture("high_quality");
  const Predictor predictor(fixture.model);
  EXPECT_TRUE(predictor.high_quality());
  EXPECT_FALSE(Predictor(sam_fixture("windows").model).high_quality());
  ImageEmbedding embedding = predictor.embed(fixture.image);
  EXPECT_EQ(embedding.features.at(0).shape(), (Shape{24, 24, 4}));
  const auto error = [&] { return testing::error_of([&] { predictor.predict(embedding, fixture.prompts[0]); }); };
  embedding.features[0] = Tensor::zeros({24, 24, 3});
  EXPECT_TRUE(testing::contains(error(), "hq_features [24, 24, 4], got [24, 24, 3]")) << error();
  embedding.features.clear();
  EXPECT_TRUE(testing::contains(error(), "an embedding without them")) << error();
}

TEST(Predictor, TakesOtherPixelFormats) {
  const SamFixture fixture = sam_fixture("windows");
  const Predictor predictor(fixture.model);
  std::vector<uint8_t> bgra;
  for (size_t i = 0; i < fixture.image.pixels.size(); i += 3) {
    const uint8_t* const rgb = fixture.image.pixels.data() + i;
    bgra.insert(bgra.end(), {rgb[2], rgb[1], rgb[0], 0});
  }
  const image::ImageView view(bgra.data(), fixture.image.width, fixture.image.height, image::PixelFormat::bgra);
  EXPECT_TRUE(testing::close(predictor.embed(view).values, predictor.embed(fixture.image).values, 0));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { predictor.embed(image::make_image(1, 500, 3)); }), "1×500"));
}

TEST(Predictor, RefusesPromptsThatMakeNoSense) {
  const SamFixture fixture = sam_fixture("windows");  // an image of 24×70
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor half = Tensor::full({36, 36}, 1);
  half.data<float>()[5] = 0;
  Tensor infinite = Tensor::full({36, 36}, -1);
  infinite.data<float>()[7] = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<Prompt, std::string>> wrong{
      {{}, "points, a box or a mask"},           {{.points = {{1, 1, 2}}}, "the label 1"},
      {{.points = {{1, 1, -1}}}, "the label 1"}, {{.points = {{25, 1, 1}}}, "24×70"},
      {{.points = {{1, -0.5, 1}}}, "24×70"},     {{.points = {{nan, 1, 1}}}, "nan"},
      {{.box = Box{1, 1, 30, 5}}, "24×70"},      {{.box = Box{5, 1, 5, 9}}, "x0 < x1"},
      {{.box = Box{9, 9, 3, 3}}, "x0 < x1"},     {{.mask_logits = Tensor::full({35, 36}, -1)}, "[36, 36]"},
      {{.mask_logits = half}, "a binary mask"},  {{.mask_logits = infinite}, "NaN or infinity"},
  };
  for (const auto& [prompt, expected] : wrong) {
    const std::string message = testing::error_of([&, &p = prompt] { predictor.predict(embedding, p); });
    EXPECT_TRUE(testing::contains(message, expected)) << message;
    const std::vector<Prompt> both{fixture.prompts[0], prompt};
    EXPECT_TRUE(testing::contains(testing::error_of([&] { predictor.predict(embedding, both); }), "prompt 1"));
  }
  ImageEmbedding other = embedding;
  other.values = Tensor::zeros({32, 9, 9});
  EXPECT_TRUE(testing::contains(testing::error_of([&] { predictor.predict(other, fixture.prompts[0]); }), "embedding"));
  testing::error_of([&] { predictor.predict({}, fixture.prompts[0]); });
}

TEST(Predictor, HasTheSizesOfItsModel) {
  const SamFixture fixture = sam_fixture("windows");
  const Predictor predictor(fixture.model);
  const models::SamConfig config = models::load_sam(fixture.model).config();
  EXPECT_EQ(predictor.image_size(), 9 * config.encoder.patch_size);
  EXPECT_EQ(predictor.mask_size(), 36);
  EXPECT_EQ(predictor.multimask_count(), 3);
  EXPECT_EQ(predictor.embedding_shape(), (Shape{16, 9, 9}));
  EXPECT_TRUE(predictor.has_decoder());
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  EXPECT_EQ(embedding.width, 24);
  EXPECT_EQ(embedding.height, 70);
  EXPECT_EQ(embedding.values.shape(), (Shape{16, 9, 9}));
  EXPECT_EQ(embedding.decoder_input.shape(), (Shape{9, 9, 16}));
  EXPECT_TRUE(embedding.features.empty());
  EXPECT_EQ(predictor.image_logits(Tensor::zeros({36, 36}), 24, 70).shape(), (Shape{70, 24}));
}

TEST(Predictor, RefusalsNameTheShapes) {
  const SamFixture fixture = sam_fixture("windows");
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  const auto with = [&](const std::function<void(ImageEmbedding&)>& change) {
    ImageEmbedding changed = embedding;
    change(changed);
    return refusal(predictor, changed, fixture.prompts[0]);
  };
  const std::string shape = "embedding: expected [16, 9, 9], as this model computes it, got ";
  EXPECT_EQ(with([](ImageEmbedding& e) { e.values = {}; }), shape + "none");
  EXPECT_EQ(with([](ImageEmbedding& e) { e.values = Tensor::zeros({16, 9, 8}); }), shape + "[16, 9, 8]");
  EXPECT_EQ(with([](ImageEmbedding& e) { e.width = 0; }), shape + "[16, 9, 9]");
  EXPECT_EQ(with([](ImageEmbedding& e) { e.height = 0; }), shape + "[16, 9, 9]");
  const std::string projections = embedding.projections.shape().to_string();
  EXPECT_EQ(embedding.projections.size(0), 3);
  EXPECT_EQ(embedding.projections.size(1), 81);
  EXPECT_EQ(with([](ImageEmbedding& e) {
              e.projections = Tensor::zeros({3, 81, 1});
            }),
            "embedding: expected projections " + projections + ", or none, got [3, 81, 1]");
  EXPECT_ERROR(with([](ImageEmbedding& e) { e.decoder_input = Tensor::zeros({16, 9, 9}); }), "embedding", "[16, 9, 9]");
  const auto of_mask = [&](const Tensor& mask, int64_t width, int64_t height) {
    return testing::error_of([&] { predictor.image_logits(mask, width, height); });
  };
  const std::string logits = "mask: expected logits [36, 36] and an image of at least 1×1, got ";
  EXPECT_EQ(of_mask(Tensor::zeros({36, 35}), 24, 70), logits + "[36, 35], 24×70");
  EXPECT_EQ(of_mask(Tensor::zeros({36, 36}), 0, 70), logits + "[36, 36], 0×70");
  EXPECT_EQ(of_mask(Tensor::zeros({36, 36}), 24, 0), logits + "[36, 36], 24×0");
  EXPECT_EQ(predictor.image_logits(Tensor::zeros({36, 36}), 1, 1).shape(), (Shape{1, 1}));
  const Prompt outside{.points = {{25, 1, 1}}};
  EXPECT_ERROR(refusal(predictor, embedding, outside), "prompt", "(25, 1)");
  const std::vector<Prompt> several{fixture.prompts[0], fixture.prompts[1], outside};
  EXPECT_ERROR(testing::error_of([&] { predictor.predict(embedding, several); }), "prompt 2", "(25, 1)");
}

// A box takes the place of the padding point, and a mask is of its prompt alone, among prompts of all kinds.
TEST(Predictor, PromptsOfManyKindsKeepTheirOrder) {
  const SamFixture fixture = sam_fixture("padded_windows");
  const Predictor predictor(fixture.model);
  const ImageEmbedding embedding = predictor.embed(fixture.image);
  ImageEmbedding read = embedding;
  read.projections = read.decoder_input = {};
  const Tensor first = Tensor::randn({40, 40}, 3), second = Tensor::randn({40, 40}, 4);
  const std::vector<Prompt> prompts{{.points = {{10, 20, 1}}, .mask_logits = first},
                                    {.points = {{10, 20, 1}}},
                                    {.points = {{10, 20, 0}}},
                                    {.box = Box{10, 20, 50, 40}},
                                    {.mask_logits = second},
                                    {.points = {{10, 20, 1}}, .mask_logits = second, .multimask = false},
                                    {.points = {{10, 20, 1}, {30, 5, 1}}},
                                    {.points = {{10, 20, 1}}, .box = Box{10, 20, 50, 40}},
                                    {.points = {{20, 10, 1}}}};
  const std::vector<Masks> all = predictor.predict(embedding, prompts), computed = predictor.predict(read, prompts);
  ASSERT_EQ(all.size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Masks alone = predictor.predict(embedding, prompts[i]);
    const double tolerance = 1e-5 * largest(alone.logits);
    EXPECT_TRUE(testing::close(all[i].logits, alone.logits, tolerance)) << i;
    EXPECT_TRUE(testing::close(computed[i].logits, alone.logits, tolerance)) << i;
    EXPECT_EQ(all[i].iou.size(), prompts[i].multimask ? 3u : 1u);
    ASSERT_EQ(all[i].iou.size(), alone.iou.size());
    for (size_t m = 0; m < alone.iou.size(); ++m) EXPECT_NEAR(all[i].iou[m], alone.iou[m], 1e-4) << i;
    for (size_t j = 0; j < i; ++j) {
      if (all[j].logits.shape() == all[i].logits.shape()) {
        EXPECT_FALSE(testing::close(all[i].logits, all[j].logits, tolerance)) << i << " is not " << j;
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::sam
