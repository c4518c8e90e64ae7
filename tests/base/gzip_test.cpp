// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/gzip_internal.h"

#include <gtest/gtest.h>
#include <zlib.h>

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

// Data as of zlib's compress(), or without its header of two bytes and its check of four.
std::vector<std::byte> deflated(const std::string& text, bool with_header) {
  uLongf size = ::compressBound(text.size());
  std::vector<std::byte> bytes(size);
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                       text.size()),
            Z_OK);
  bytes.resize(size);
  return with_header ? bytes : std::vector<std::byte>(bytes.begin() + 2, bytes.end() - 4);
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
    EXPECT_GE(gunzip(bytes_of(entry.path()), 1 << 26, entry.path().string()).size(), 10008u);
  }
}

}  // namespace
}  // namespace vitrail
