// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/crc32c_internal.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace vitrail {
namespace {

TEST(Crc32c, MatchesTheExamplesOfRfc3720) {
  const std::vector<unsigned char> zeros(32, 0), ones(32, 0xFF);
  std::vector<unsigned char> rising(32);
  std::iota(rising.begin(), rising.end(), 0);
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc32c(rising.data(), 32), 0x46DD794Eu);
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, OfTwoPartsEqualsThatOfTheWhole) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32c(text.data(), cut);
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, first), crc32c(text.data(), text.size())) << cut;
  }
}

}  // namespace
}  // namespace vitrail
