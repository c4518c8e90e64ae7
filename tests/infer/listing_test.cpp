// SPDX-License-Identifier: Apache-2.0
// The listings of compiled programs are committed, so that a lost fusion fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/paths.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/registry.h"

namespace vitrail::infer {
namespace {

// Every kind of program: plain, distilled, with registers and LayerScale, with SwiGLU, and the ViTs for CIFAR-10.
constexpr const char* kArchitectures[] = {"vit_tiny_patch16_224",
                                          "vit_small_patch16_224",
                                          "vit_base_patch16_224",
                                          "deit_tiny_distilled_patch16_224",
                                          "vit_small_patch14_reg4_dinov2",
                                          "vit_giant_patch14_dinov2",
                                          "cifar_vit_d192",
                                          "cifar_vit_d384"};

std::string listing_of(const std::string& name) {
  models::VisionTransformerConfig config = models::find_architecture(name)->config;
  config.depth = std::min<int64_t>(config.depth, 2);  // further blocks repeat the second
  config.img_size = {std::min<int64_t>(config.img_size[0], 224), std::min<int64_t>(config.img_size[1], 224)};
  RandomParams zeros(0);
  const Session session(models::VisionTransformer(config, ParamSource(zeros)), {.threads = 1});
  return session.program({1, config.in_chans, config.img_size[0], config.img_size[1]})->listing();
}

class Listing : public ::testing::TestWithParam<const char*> {};

// VITRAIL_WRITE_LISTINGS=1 rewrites the files.  Review the difference before committing it.
TEST_P(Listing, IsTheCommittedOne) {
  const auto path = testing::fixture("programs") / (std::string(GetParam()) + ".txt");
  const std::string listing = listing_of(GetParam());
  if (std::getenv("VITRAIL_WRITE_LISTINGS")) std::ofstream(path) << listing;
  std::ostringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(listing, committed.str());
}

INSTANTIATE_TEST_SUITE_P(Architectures, Listing, ::testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace vitrail::infer
