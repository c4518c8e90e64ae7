// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/digest_internal.h"

#include <gtest/gtest.h>

namespace vitrail::hub {
namespace {

std::string digest(std::unique_ptr<Digest> digest, const std::string& text, size_t piece) {
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string part = text.substr(at, piece);
    digest->update(part.data(), part.size());
  }
  return digest->hex();
}

// The examples of FIPS 180-4, and a million times "a".
TEST(Digest, GivesTheStandardsExamples) {
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", million(1'000'000, 'a');
  const std::pair<std::string, std::string> sha256[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  const std::pair<std::string, std::string> sha1[] = {{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
                                                      {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
                                                      {two_blocks, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
                                                      {million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"}};
  for (const size_t piece : {1, 63, 64, 65, 100'000}) {
    for (const auto& [text, want] : sha256) EXPECT_EQ(digest(make_sha256(), text, piece), want) << piece;
    for (const auto& [text, want] : sha1) EXPECT_EQ(digest(make_sha1(), text, piece), want) << piece;
  }
}

TEST(Digest, OfABlobIsGits) {  // printf hello | git hash-object --stdin
  const std::string want = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
  EXPECT_EQ(digest(digest_of_blob(want, 5), "hello", 5), want);
}

}  // namespace
}  // namespace vitrail::hub
