// SPDX-License-Identifier: Apache-2.0
// Mixtures of two normal distributions against scikit-learn (tools/golden/normal_mixture.py), and artefact tokens.
#include "vitrail/analysis/artefact_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/analysis/normal_mixture.h"

namespace vitrail::analysis {
namespace {

std::vector<double> doubles_of(const Tensor& values) {
  return {values.data<float>(), values.data<float>() + values.numel()};
}

class NormalMixtureTest : public ::testing::TestWithParam<const char*> {};

// The same iterations as scikit-learn's, in another order of summation; results are stored as float.
TEST_P(NormalMixtureTest, IsThatOfScikitLearn) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/normal_mixture.safetensors"));
  const std::string name = GetParam();
  const NormalMixture mixture = fit_normal_mixture(doubles_of(golden[name + ".values"]));
  std::vector<double> got;
  for (const auto& component : mixture.components)
    got.insert(got.end(), {component.weight, component.mean, component.deviation});
  EXPECT_TRUE(testing::close(Tensor::from<double>({2, 3}, got), golden[name + ".mixture"], 1e-6, 1e-6));
  EXPECT_NEAR(mixture.log_likelihood, golden[name + ".log_likelihood"].data<float>()[0], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Cases, NormalMixtureTest,
                         ::testing::Values("artefacts", "equal", "overlapping", "wide", "single"));

TEST(NormalMixture, NeedsFiniteValues) {
  EXPECT_ERROR(testing::error_of([] { fit_normal_mixture({1}); }), "mixture", "1");
  EXPECT_ERROR(testing::error_of([] { fit_normal_mixture({1, std::nan("")}); }), "mixture", "nan");
}

// 4 of 196 patches have norms near e^5.6, the others near e^3.9.
TEST(ArtefactTokens, AreAboveTheThresholdBetweenBothGroups) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/normal_mixture.safetensors"));
  const std::vector<double> logarithms = doubles_of(golden["artefacts.values"]);
  std::vector<double> norms;
  for (const double value : logarithms) norms.push_back(std::exp(value));
  const std::optional<ArtefactTokens> found = artefact_tokens(norms);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->share, 4.0 / 196);
  const NormalMixture mixture = fit_normal_mixture(logarithms);
  const double at = std::log(found->threshold);
  EXPECT_GT(at, mixture.components[0].mean);
  EXPECT_LT(at, mixture.components[1].mean);
  EXPECT_NEAR(mixture.log_density(0, at), mixture.log_density(1, at), 1e-6);
}

TEST(ArtefactTokens, AreNotInOneGroup) {
  const Tensor normal = Tensor::randn({196}, 3);
  std::vector<double> norms;
  for (const double value : doubles_of(normal)) norms.push_back(std::exp(4 + 0.1 * value));
  EXPECT_FALSE(artefact_tokens(norms));
  for (size_t i = 0; i < norms.size(); ++i) norms[i] = std::exp(static_cast<double>(i) / 196);  // uniform
  EXPECT_FALSE(artefact_tokens(norms));
  EXPECT_FALSE(artefact_tokens(std::vector<double>(20, 3.0)));
  EXPECT_FALSE(artefact_tokens({5.0}));
  for (const double wrong : {0.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(artefact_tokens({1, 1.1, 1.2, 9, 9.1, 9.2, wrong}));
}

}  // namespace
}  // namespace vitrail::analysis
