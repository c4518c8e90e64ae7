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

TEST(BlobDigest, OfLargeFileStorageIsThatOfTheContentAlone) {  // FIPS 180-2, appendix B.1
  const std::string name = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const auto digest = digest_of_blob(name, 99);
  digest->update("abc", 3);
  EXPECT_EQ(digest->hex(), name);
}

TEST(BlobDigest, OfAnEmptyFileIsGits) {  // git hash-object /dev/null
  const std::string name = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
  EXPECT_EQ(digest_of_blob(name, 0)->hex(), name);
}

TEST(BlobDigest, ANameIsOfLowerCaseHexadecimalDigits) {
  EXPECT_TRUE(is_hex("0123456789abcdef", 16));
  EXPECT_TRUE(is_hex("", 0));
  for (const char* text : {"0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "0123456789abcdeg", ""})
    EXPECT_FALSE(is_hex(text, 16)) << text;
}

}  // namespace
}  // namespace vitrail::hub
