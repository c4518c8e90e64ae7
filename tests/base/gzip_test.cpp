// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip_internal.h"

#include <gtest/gtest.h>

#include "tests/support/deflate.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail {
namespace {

std::vector<std::byte> mapped_bytes(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

TEST(Gzip, MembersAreConcatenatedAndTrailingZerosIgnored) {
  auto bytes = mapped_bytes(testing::fixture("base/two_members.gz"));
  bytes.resize(bytes.size() + 512);
  const auto content = gunzip(bytes, 1 << 20, "two_members.gz");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(content.data()), content.size()), "first and second");
  bytes.back() = std::byte{1};
  EXPECT_THROW(gunzip(bytes, 1 << 20, "two_members.gz"), Error);
}

TEST(Gzip, ContentAboveTheMaximumSizeIsAnError) {
  const auto bytes = mapped_bytes(testing::fixture("base/bomb.gz"));  // a megabyte of zeros in a kilobyte
  EXPECT_EQ(gunzip(bytes, 1 << 20, "bomb.gz").size(), size_t{1} << 20);
  EXPECT_THROW(gunzip(bytes, (1 << 20) - 1, "bomb.gz"), Error);
  EXPECT_THROW(gunzip(bytes, 0, "bomb.gz"), Error);
}

TEST(Gzip, TruncatedAndCorruptedDataThrowsOrDecompresses) {
  const auto bytes = mapped_bytes(testing::fixture("base/two_members.gz"));
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

std::vector<std::byte> deflated(const std::string& text, bool with_header) {
  return testing::deflated_bytes(text, with_header ? testing::kZlibFormat : testing::kRawFormat);
}

TEST(InflateAll, ReadsDataWithAndWithoutZlibsHeader) {
  for (const std::string& text : {std::string(), std::string("deflated"), std::string(200'000, 'a')}) {
    for (const bool with_header : {false, true}) {
      auto bytes = deflated(text, with_header);
      const auto content = inflate_all(bytes, text.size(), "body");
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(content.data()), content.size()), text);
      if (!text.empty()) {
        EXPECT_THROW(inflate_all(bytes, text.size() - 1, "body"), Error);
      }
      bytes.push_back(std::byte{0});
      EXPECT_THROW(inflate_all(bytes, text.size(), "body"), Error) << "a byte after the data";
    }
  }
}

// A stored block, then an empty one at the end; the padding of the first makes its byte that of zlib's header.
TEST(InflateAll, AHeaderHasItsMethodWindowAndCheck) {
  const auto stored = [](unsigned char first, char count) {
    std::string bytes{static_cast<char>(first), count, '\0', static_cast<char>(~count), '\xff'};
    bytes += std::string(static_cast<size_t>(count), 'a') + std::string("\x01\0\0\xff\xff", 5);
    return bytes;
  };
  const auto inflated = [](const std::string& bytes) {
    const auto content = inflate_all(std::as_bytes(std::span(bytes)), 100, "body");
    return std::string(reinterpret_cast<const char*>(content.data()), content.size());
  };
  EXPECT_EQ(inflated(stored(0x00, 5)), "aaaaa");
  EXPECT_EQ(inflated(stored(0x78, 5)), "aaaaa") << "no multiple of 31";
  EXPECT_EQ(inflated(stored(0x88, 28)), std::string(28, 'a')) << "a window above 32 KiB";
  EXPECT_EQ(inflated(stored(0x70, 3)), std::string(3, 'a')) << "another method";
  EXPECT_THROW(inflated(stored(0x78, 1)), Error) << "a header of zlib";
}

TEST(InflateAll, TruncatedAndCorruptedDataThrowsOrDecompresses) {
  for (const bool with_header : {false, true}) {
    const auto bytes = deflated("first and second, first and second", with_header);
    for (size_t length = 0; length < bytes.size(); ++length)
      EXPECT_THROW(inflate_all(std::span(bytes).first(length), 100, "body"), Error) << length;
    for (size_t at = 0; at < bytes.size(); ++at) {
      auto changed = bytes;
      changed[at] ^= std::byte{0xff};
      try {
        inflate_all(changed, 100, "body");
        EXPECT_FALSE(with_header && at > 1) << "the check does not notice byte " << at;
      } catch (const Error&) {
      }
    }
  }
}

TEST(Gzip, TheSharedMnistFilesDecompress) {
  VITRAIL_NEED_ASSETS(assets);
  for (const auto& entry : std::filesystem::directory_iterator(assets / "mnist")) {
    if (entry.path().extension() != ".gz") continue;
    EXPECT_GE(gunzip(mapped_bytes(entry.path()), 1 << 26, entry.path().string()).size(), 10008u);
  }
}

TEST(Gzip, IsKnownByItsFirstTwoBytes) {
  const auto starts = [](const std::string& bytes) { return is_gzip(std::as_bytes(std::span(bytes))); };
  for (const char* bytes : {"\x1f\x8b", "\x1f\x8b\x08"}) EXPECT_TRUE(starts(bytes));
  for (const char* bytes : {"", "\x1f", "\x8b", "\x8b\x1f", "\x1f\x8c", "\x1e\x8b", "x\x1f\x8b"})
    EXPECT_FALSE(starts(bytes)) << ::testing::PrintToString(bytes);
}

TEST(Gzip, TheErrorSaysWhatIsWrongAndWhere) {
  const auto bytes = mapped_bytes(testing::fixture("base/two_members.gz"));  // "first " and "and second"
  const auto error = [](std::vector<std::byte> file, uint64_t max_size) {
    return testing::error_of([&] { gunzip(file, max_size, "a.gz"); });
  };
  EXPECT_ERROR(error({}, 100), "a.gz", "a file of another kind");
  auto changed = bytes;
  changed[1] = std::byte{0x8c};
  EXPECT_ERROR(error(changed, 100), "a.gz", "a file of another kind");
  EXPECT_ERROR(error({bytes.begin(), bytes.begin() + 10}, 100), "a.gz", "truncated data after 0 bytes");
  changed = bytes;
  changed[2] = std::byte{9};  // the method
  EXPECT_ERROR(error(changed, 100), "a.gz", "damaged data after 0 bytes");
  changed = bytes;
  changed.insert(changed.end(), {std::byte{0}, std::byte{7}, std::byte{0}});
  EXPECT_ERROR(error(changed, 100), "a.gz", "3 bytes");
  EXPECT_ERROR(error(bytes, 15), "a.gz", "more");
  EXPECT_ERROR(error(bytes, 5), "a.gz", "more");
  EXPECT_EQ(gunzip(bytes, 16, "a.gz").size(), 16u);
  EXPECT_EQ(gunzip(bytes, UINT64_MAX, "a.gz").size(), 16u);
}

TEST(InflateAll, TheErrorSaysWhatIsWrongAndWhere) {
  const auto bytes = deflated("first and second", true);
  const auto error = [](std::vector<std::byte> file, uint64_t max_size) {
    return testing::error_of([&] { inflate_all(file, max_size, "body"); });
  };
  EXPECT_ERROR(error({}, 100), "body", "truncated data after 0 bytes");
  EXPECT_ERROR(error({bytes.begin(), bytes.end() - 1}, 100), "body", "truncated data after 16 bytes");
  auto changed = bytes;
  changed.push_back(std::byte{5});
  changed.push_back(std::byte{0});
  EXPECT_ERROR(error(changed, 100), "body", "2 bytes");
  changed.resize(bytes.size());
  changed.back() ^= std::byte{1};
  EXPECT_ERROR(error(changed, 100), "body", "damaged data after 16 bytes");
  EXPECT_ERROR(error(bytes, 15), "body", "more");
  EXPECT_EQ(inflate_all(bytes, UINT64_MAX, "body").size(), 16u);
}

}  // namespace
}  // namespace vitrail
