// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/digest_internal.h"

#include <gtest/gtest.h>

#include <string>

namespace vitrail {
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

// Lengths around the end of a block (sha256sum of coreutils).
TEST(Digest, PadsEveryLength) {
  const auto digest_of = [](const std::string& text) { return sha256(std::as_bytes(std::span(text))); };
  EXPECT_EQ(digest_of(std::string(55, 'x')), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(digest_of(std::string(56, 'x')), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(digest_of(std::string(63, 'x')), "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  EXPECT_EQ(digest_of(std::string(64, 'x')), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  EXPECT_EQ(digest_of(std::string(65, 'x')), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
  EXPECT_EQ(digest_of(std::string(119, 'x')), "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  EXPECT_EQ(digest_of(std::string(120, 'x')), "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
}

TEST(Digest, BytesAboveTheFirstHalfAndPiecesOfBlocksCount) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (const size_t piece : {7, 64, 100, 256}) {  // sha256sum and sha1sum of the 256 bytes
    EXPECT_EQ(digest(make_sha256(), bytes, piece), "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880");
    EXPECT_EQ(digest(make_sha1(), bytes, piece), "4916d6bdb7f78e6803698cab32d1586ea457dfc8");
  }
}

}  // namespace
}  // namespace vitrail
