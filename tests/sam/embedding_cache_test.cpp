// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/embedding_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::sam {
namespace {

using testing::contains;
using testing::error_of;
using testing::sam_fixture;

ImageEmbedding embedding() { return {Tensor::randn({4, 3, 3}, 7), 30, 20}; }

TEST(EmbeddingCache, ReadsWhatItKept) {
  const auto folder = testing::scratch_folder() / "new";
  const EmbeddingCache cache(folder, "model");
  EXPECT_FALSE(cache.find("key"));
  const ImageEmbedding added = cache.add("key", embedding());
  const auto found = EmbeddingCache(folder, "model").find("key");
  ASSERT_TRUE(found);
  EXPECT_TRUE(testing::close(found->values, added.values, 0));
  EXPECT_TRUE(testing::close(found->values, embedding().values, 0, 1.0 / 2048)) << "half a unit of fp16";
  EXPECT_EQ(found->width, 30);
  EXPECT_EQ(found->height, 20);
  EXPECT_FALSE(cache.find("other"));
}

TEST(EmbeddingCache, KeepsTheFeaturesOfHqSam) {
  const EmbeddingCache cache(testing::scratch_folder(), "model");
  ImageEmbedding with = embedding();
  with.features = {Tensor::randn({12, 12, 2}, 8), Tensor::randn({6, 6, 4}, 9)};
  const ImageEmbedding added = cache.add("with", with);
  const auto found = cache.find("with");
  ASSERT_TRUE(found && found->features.size() == 2);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(testing::close(found->features[i], added.features[i], 0));
  EXPECT_TRUE(testing::close(found->features[1], with.features[1], 0, 1.0 / 2048)) << "half a unit of fp16";
  cache.add("without", embedding());
  EXPECT_TRUE(cache.find("without")->features.empty());
}

TEST(EmbeddingCache, RefusesAnotherModelsFiles) {
  const auto folder = testing::scratch_folder();
  EmbeddingCache(folder, "one").add("key", embedding());
  const EmbeddingCache other(folder, "two");
  const std::string message = error_of([&] { other.find("key"); });
  EXPECT_TRUE(contains(message, "key.safetensors: expected an embedding of this model (two")) << message;
}

TEST(EmbeddingCache, RefusesDamagedFiles) {
  const auto folder = testing::scratch_folder();
  const EmbeddingCache cache(folder, "model");
  const auto error_with = [&](const std::string& name, const std::map<std::string, std::string>& metadata) {
    weights::write_safetensors(folder / "key.safetensors", {{name, embedding().values}}, metadata);
    return error_of([&] { cache.find("key"); });
  };
  EXPECT_TRUE(contains(error_with("embedding", {}), "of this model"));
  EXPECT_TRUE(contains(error_with("values", {{"model", "model"}}), "a tensor \"embedding\""));
  for (const char* width : {"", "0", "-3", "3x", "99999999999999999999"}) {
    const std::string message = error_with("embedding", {{"model", "model"}, {"width", width}, {"height", "20"}});
    EXPECT_TRUE(contains(message, "the width of an image")) << message;
  }
  std::ofstream(folder / "key.safetensors", std::ios::trunc) << "damaged";
  EXPECT_TRUE(contains(error_of([&] { cache.find("key"); }), "key.safetensors"));
}

TEST(EmbeddingCache, RefusesValuesBeyondFp16) {
  const EmbeddingCache cache(testing::scratch_folder(), "model");
  const ImageEmbedding large{Tensor::full({1, 1, 1}, 70'000), 1, 1};
  EXPECT_TRUE(contains(error_of([&] { cache.add("key", large); }), "the range of fp16"));
  EXPECT_FALSE(cache.find("key"));
}

TEST(EmbeddingCache, NeedsAFolder) {
  const auto file = testing::scratch_folder() / "file";
  std::ofstream(file) << "x";
  EXPECT_TRUE(contains(error_of([&] { EmbeddingCache(file / "cache", "model"); }), "a folder for image embeddings"));
}

TEST(EmbeddingModel, DependsOnPrecisionAndPreprocessing) {
  using models::SamPreprocessing;
  const std::filesystem::path path = sam_fixture("medsam").model, other = sam_fixture("windows").model;
  const std::string own = embedding_model(path, {});
  EXPECT_EQ(own, embedding_model(path, {.threads = 1, .preprocessing = SamPreprocessing::medsam}));
  EXPECT_NE(own, embedding_model(path, {.preprocessing = SamPreprocessing::segment_anything}));
  EXPECT_NE(own, embedding_model(path, {.precision = kernels::Precision::half}));
  EXPECT_EQ(embedding_model(other, {}), embedding_model(other, {.preprocessing = SamPreprocessing::segment_anything}));
}

TEST(EmbeddingKey, IsThatOfTheContentAndTheOrientation) {
  const std::string a = "abc", b = "abd";
  const auto key = [](const std::string& text, bool exif) {
    return embedding_key(std::as_bytes(std::span(text)), exif);
  };
  EXPECT_EQ(key(a, false), key(std::string("abc"), false));
  EXPECT_NE(key(a, false), key(b, false));
  EXPECT_NE(key(a, false), key(a, true));
}

TEST(EmbeddingCache, MessagesNameModelsAndFields) {
  const auto folder = testing::scratch_folder();
  const std::string file = (folder / "key.safetensors").string();
  const EmbeddingCache cache(folder, "abcdefghijklmnop");
  const auto refusal = [&](const std::string& name, const std::map<std::string, std::string>& metadata) {
    weights::write_safetensors(file, {{name, embedding().values}}, metadata);
    return error_of([&] { cache.find("key"); });
  };
  EXPECT_ERROR(refusal("embedding", {{"model", "qrstuvwxyz0123"}}), file,
               "one of another model (qrstuvwxyz01…); each model and precision needs a cache folder of its own");
  EXPECT_ERROR(refusal("values", {{"model", "abcdefghijklmnop"}}), file, "none; delete the file to compute it again");
  EXPECT_ERROR(refusal("embedding", {{"model", "abcdefghijklmnop"}, {"width", "3x"}, {"height", "20"}}), file,
               "'3x'; delete the file to compute it again");
  EXPECT_ERROR(refusal("embedding", {{"model", "abcdefghijklmnop"}, {"width", "3"}, {"height", "0"}}), file,
               "'0'; delete the file to compute it again");
  EXPECT_ERROR(refusal("embedding", {{"model", "abcdefghijklmnop"}, {"width", "3"}}), file,
               "''; delete the file to compute it again");
  weights::write_safetensors(file, {{"embedding", embedding().values}},
                             {{"model", "abcdefghijklmnop"}, {"width", "1"}, {"height", "2"}});
  EXPECT_EQ(cache.find("key")->width, 1);
  EXPECT_EQ(cache.find("key")->height, 2);
}

TEST(EmbeddingCache, ReturnsWhatItKeeps) {
  const EmbeddingCache cache(testing::scratch_folder(), "model");
  const ImageEmbedding added = cache.add("key", embedding());
  EXPECT_EQ(added.width, 30);
  EXPECT_EQ(added.height, 20);
  EXPECT_TRUE(added.features.empty());
  EXPECT_EQ(added.values.dtype(), DType::f32);
  EXPECT_EQ(added.values.shape(), (Shape{4, 3, 3}));
  ImageEmbedding other = embedding();
  other.features = {Tensor::full({1, 1, 1}, std::numeric_limits<float>::quiet_NaN())};
  EXPECT_ERROR(error_of([&] { cache.add("nan", other); }), "image embedding", "a larger one or a NaN");
  EXPECT_TRUE(cache.add("largest", {Tensor::full({1, 1, 1}, 65504), 1, 1}).values.defined());
}

// SHA-256 of "abc": FIPS 180-2, appendix B.1.
TEST(EmbeddingKey, IsADigestWithTheUseOfTheOrientation) {
  const std::string text = "abc", digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(embedding_key(std::as_bytes(std::span(text)), false), digest);
  EXPECT_EQ(embedding_key(std::as_bytes(std::span(text)), true), digest + "-exif");
}

TEST(EmbeddingModel, IsADigestBehindThePrecision) {
  const std::filesystem::path path = sam_fixture("windows").model;
  const std::string digest = models::sam_encoder_digest(path);
  EXPECT_EQ(embedding_model(path, {}), digest);
  for (const auto precision : {kernels::Precision::half, kernels::Precision::int8})
    EXPECT_EQ(embedding_model(path, {.precision = precision}), std::string(kernels::name_of(precision)) + "-" + digest);
}

}  // namespace
}  // namespace vitrail::sam
