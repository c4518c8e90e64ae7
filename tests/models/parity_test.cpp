// Every model fixture against the reference implementation that made it: the eager model, layer by layer as the paper
// has it.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(testing::fixture("models"))) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path weights_of(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.pth", "model_legacy.pth", "model.npz"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return folder;
}

class Parity : public ::testing::TestWithParam<std::string> {};

// The fixtures were computed in double.  f32 differs by rounding alone: two blocks of sums of at most a few hundred
// products, each off by 2^-24 relative, stay two orders below 1e-4.
TEST_P(Parity, LogitsAndTokensEqualTheReference) {
  const fs::path folder = testing::fixture("models/" + GetParam());
  const testing::Golden golden = testing::read_golden(folder / "golden.safetensors");
  const VisionTransformer model = build_model(open_model(weights_of(folder)));
  for (const std::string suffix : {"", "2"}) {
    if (!golden.has("input" + suffix)) continue;
    const Tensor tokens = model.forward_features(golden["input" + suffix]);
    if (golden.has("tokens" + suffix)) {
      EXPECT_TRUE(testing::close(tokens, golden["tokens" + suffix], 1e-4)) << suffix;
    }
    if (golden.has("logits" + suffix)) {
      EXPECT_TRUE(testing::close(model.forward_head(tokens), golden["logits" + suffix], 1e-4)) << suffix;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Parity, ::testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace vitrail::models
