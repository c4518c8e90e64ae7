// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/paths.h"
#include "vitrail/data/datasets/manifest.h"

namespace vitrail::data {
namespace {

// Threads with copies of one recipe, as the processes of a run.
TEST(ManifestsConcurrent, CopiesShareThemAndMayForgetThem) {
  const std::filesystem::path set = testing::source("examples/digits.zip");
  const Manifests first;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([manifests = first, &set, t]() mutable {
      for (int i = 0; i < 20; ++i) {
        EXPECT_FALSE(manifests.get(set)->splits().empty());
        if (t == 0) manifests.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Manifests copy = first;
  const auto manifest = copy.get(set);
  EXPECT_EQ(Manifests(first).get(set), manifest) << "read once";
  copy.clear();
  EXPECT_NE(Manifests(first).get(set), manifest);
}

}  // namespace
}  // namespace vitrail::data
