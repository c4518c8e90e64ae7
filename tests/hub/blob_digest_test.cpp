// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/blob_digest_internal.h"

#include <gtest/gtest.h>

namespace vitrail::hub {
namespace {

TEST(BlobDigest, OfASmallFileIsGits) {  // printf hello | git hash-object --stdin
  const std::string name = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
  const auto digest = digest_of_blob(name, 5);
  digest->update("hello", 5);
  EXPECT_EQ(digest->hex(), name);
}

}  // namespace
}  // namespace vitrail::hub
