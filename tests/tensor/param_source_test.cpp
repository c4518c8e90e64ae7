// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/param_source.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

// Records the paths that it is asked for.
class RecordingProvider : public ParamProvider {
 public:
  Tensor get(const std::string& path, const Shape& shape, const Initializer&) override {
    asked += path + " ";
    return Tensor::zeros(shape);
  }
  bool has(const std::string& path) const override { return path == "a.b"; }
  void finish() override {}
  std::string asked;
};

TEST(ParamSource, JoinsThePathOfNestedModules) {
  RecordingProvider provider;
  const ParamSource root(provider);
  const Initializer nothing = [](Tensor&, uint64_t) {};
  root.get("x", {1}, nothing);
  root.child("blocks").child(3).get("y", {1}, nothing);
  ParamSource(provider, "given").child("z").get("w", {1}, nothing);
  EXPECT_EQ(provider.asked, "x blocks.3.y given.z.w ");
  EXPECT_EQ(root.path(), "");
  EXPECT_EQ(root.child("blocks").child(0).path(), "blocks.0");
  EXPECT_TRUE(root.child("a").has("b"));
  EXPECT_FALSE(root.has("b"));
}

Tensor drawn(RandomParams params, const std::string& path) {
  return params.get(path, {5}, [](Tensor& t, uint64_t key) { t.copy_(Tensor::randn(t.shape(), key)); });
}

TEST(RandomParams, DependOnTheSeedAndThePathAlone) {
  const Tensor first = drawn(RandomParams(1), "a");
  EXPECT_TRUE(testing::close(drawn(RandomParams(1), "a"), first, 0));
  EXPECT_FALSE(testing::close(drawn(RandomParams(2), "a"), first, 0));
  EXPECT_FALSE(testing::close(drawn(RandomParams(1), "b"), first, 0));
  EXPECT_EQ(drawn(RandomParams(1, DType::bf16), "a").dtype(), DType::bf16);
}

TEST(RandomParams, OnTheMetaDeviceAreNotInitialised) {
  RandomParams params(1, DType::f64, Device::meta);
  const Tensor t = params.get("a", {2, 3}, [](Tensor&, uint64_t) { FAIL() << "there is no data"; });
  EXPECT_TRUE(t.is_meta());
  EXPECT_EQ(t.dtype(), DType::f64);
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
}

// The key is that of the path and the seed, on every machine.
TEST(RandomParams, GiveTheInitialiserTheKeyOfThePathAndTheSeed) {
  const auto key_of = [](RandomParams params, const std::string& path) {
    uint64_t given = 0;
    const Tensor t = params.get(path, {2, 3}, [&](Tensor& parameter, uint64_t key) {
      EXPECT_EQ(parameter.shape(), (Shape{2, 3}));
      given = key;
    });
    EXPECT_EQ(t.shape(), (Shape{2, 3}));
    EXPECT_EQ(t.dtype(), DType::f32);
    EXPECT_FALSE(t.is_meta());
    return given;
  };
  EXPECT_EQ(key_of(RandomParams(), "blocks.0.w"), random_key("blocks.0.w", 0));
  EXPECT_EQ(key_of(RandomParams(9), "blocks.0.w"), random_key("blocks.0.w", 9));
  EXPECT_TRUE(RandomParams().has("anything"));
  EXPECT_NO_THROW(RandomParams().finish());
}

}  // namespace
}  // namespace vitrail
