// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip_internal.h"

#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail {
namespace {

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

TEST(Gzip, MembersAreConcatenatedAndTrailingZerosIgnored) {
  auto bytes = bytes_of(testing::fixture("base/two_members.gz"));
  bytes.resize(bytes.size() + 512);
  const auto content = gunzip(bytes, 1 << 20, "two_members.gz");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(content.data()), content.size()), "first and second");
  bytes.back() = std::byte{1};
  EXPECT_THROW(gunzip(bytes, 1 << 20, "two_members.gz"), Error);
}

TEST(Gzip, ContentAboveTheMaximumSizeIsAnError) {
  const auto bytes = bytes_of(testing::fixture("base/bomb.gz"));  // a megabyte of zeros in a kilobyte
  EXPECT_EQ(gunzip(bytes, 1 << 20, "bomb.gz").size(), size_t{1} << 20);
  EXPECT_THROW(gunzip(bytes, (1 << 20) - 1, "bomb.gz"), Error);
  EXPECT_THROW(gunzip(bytes, 0, "bomb.gz"), Error);
}

TEST(Gzip, TruncatedAndCorruptedDataThrowsOrDecompresses) {
  const auto bytes = bytes_of(testing::fixture("base/two_members.gz"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + length);
    try {
      const auto content = gunzip(cut, 100, "cut.gz");
      EXPECT_EQ(content.size(), 6u) << "only a cut at the end of the first member is valid, not at byte " << length;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("cut.gz", 0), 0u) << error.what();
    }
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] ^= std::byte{0xff};
    try {
      gunzip(changed, 100, "changed.gz");
    } catch (const Error&) {
    }
  }
}

TEST(Gzip, TheSharedMnistFilesDecompress) {
  VITRAIL_NEED_ASSETS(assets);
  for (const auto& entry : std::filesystem::directory_iterator(assets / "mnist")) {
    if (entry.path().extension() != ".gz") continue;
    EXPECT_GE(gunzip(bytes_of(entry.path()), 1 << 26, entry.path().string()).size(), 10008u);
  }
}

}  // namespace
}  // namespace vitrail
