// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_internal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail {
namespace {

std::vector<std::byte> bytes_of(const std::string& name) {
  const MappedFile file(testing::fixture("base/" + name));
  return {file.bytes().begin(), file.bytes().end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Python's zipfile wrote the fixtures: "stored.txt" and "deflated.txt" with known text, a folder and an empty file.
TEST(Zip, ListsAndReadsEntriesOfPythonsZipfile) {
  for (const char* name : {"plain.zip", "zip64.zip", "commented.zip"}) {
    const auto bytes = bytes_of(name);
    const ZipReader zip(bytes, name);
    ASSERT_EQ(zip.entries().size(), 4u) << name;
    EXPECT_EQ(zip.entries()[0].name, "stored.txt");
    EXPECT_TRUE(zip.entries()[2].is_folder());
    EXPECT_EQ(text_of(zip.read(*zip.find("stored.txt"), 100)), "kept as it is");
    EXPECT_EQ(text_of(zip.read(*zip.find("deflated.txt"), 4000)).substr(0, 8), "again an");
    EXPECT_EQ(zip.find("deflated.txt")->size, 3000u);
    EXPECT_EQ(zip.read(*zip.find("folder/empty"), 0).size(), 0u);
    EXPECT_EQ(zip.find("absent"), nullptr);
    EXPECT_EQ(zip.stored(*zip.find("stored.txt")).size(), 13u);
    EXPECT_THROW(zip.stored(*zip.find("deflated.txt")), Error);
  }
}

TEST(Zip, AnEntryAboveTheMaximumSizeIsAnError) {
  const auto bytes = bytes_of("plain.zip");
  const ZipReader zip(bytes, "plain.zip");
  EXPECT_THROW(zip.read(*zip.find("deflated.txt"), 2999), Error);
}

TEST(Zip, ASizeAboveTheMaximumDeflateRatioIsAnErrorBeforeAllocation) {
  const auto bytes = bytes_of("plain.zip");
  const ZipReader zip(bytes, "plain.zip");
  ZipEntry bomb = *zip.find("deflated.txt");
  bomb.size = uint64_t{1} << 60;
  EXPECT_THROW(zip.read(bomb, UINT64_MAX), Error);
  bomb.size = 2999;  // less than the actual 3000 bytes
  EXPECT_THROW(zip.read(bomb, UINT64_MAX), Error);
  bomb.size = 3001;
  EXPECT_THROW(zip.read(bomb, UINT64_MAX), Error);
}

TEST(Zip, EveryTruncationIsAnErrorThatNamesTheFile) {
  const auto bytes = bytes_of("zip64.zip");
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + length);
    try {
      const ZipReader zip(cut, "cut.zip");
      for (const ZipEntry& entry : zip.entries()) zip.read(entry, 1 << 20);
      ADD_FAILURE() << "no error at length " << length;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("cut.zip", 0), 0u) << error.what();
    }
  }
}

// The extra field 1 of an entry of the directory is made shorter than the values that it must hold.
TEST(Zip, AShortZip64FieldIsAnError) {
  auto bytes = bytes_of("zip64.zip");
  const auto at = [&](size_t i) {
    return std::to_integer<unsigned>(bytes[i]) | std::to_integer<unsigned>(bytes[i + 1]) << 8;
  };
  size_t entry = 0;
  while (at(entry) != 0x4b50 || at(entry + 2) != 0x0201) ++entry;
  const size_t extra = entry + 46 + at(entry + 28);
  ASSERT_EQ(at(extra), 1U);
  bytes[extra + 2] = std::byte{4};
  EXPECT_THROW(ZipReader(bytes, "short.zip"), Error);
}

// The end record of an archive without a comment: the directory's size is at byte 12, its offset at byte 16.
TEST(Zip, ADirectoryBeyondTheFileIsAnErrorThatTellsItsPlace) {
  const auto bytes = bytes_of("plain.zip");
  const size_t end = bytes.size() - 22;
  const auto with = [&](size_t field, uint32_t value) {
    std::vector<std::byte> changed = bytes;
    std::memcpy(changed.data() + end + field, &value, sizeof value);
    return changed;
  };
  uint32_t size = 0, offset = 0;
  std::memcpy(&size, bytes.data() + end + 12, sizeof size);
  std::memcpy(&offset, bytes.data() + end + 16, sizeof offset);
  const auto length = static_cast<uint32_t>(bytes.size());
  for (const auto& changed : {with(16, length + 1), with(16, length - size + 1), with(16, 0xfffffff0),
                              with(12, length - offset + 1), with(12, 0xfffffff0)}) {
    const std::string error = testing::error_of([&] { ZipReader(changed, "far.zip"); });
    EXPECT_TRUE(testing::contains(error, "far.zip: expected a zip directory inside the file's")) << error;
  }
  // The directory may overlap the end record, but its entries may not leave the directory.
  const auto longer = with(12, size - 1);
  const std::string error = testing::error_of([&] { ZipReader(longer, "short.zip"); });
  EXPECT_TRUE(testing::contains(error, "inside the directory")) << error;
}

TEST(Zip, EntriesOfOneNameAreAnError) {
  auto bytes = bytes_of("plain.zip");
  const std::string text = text_of(bytes), name = "folder/empty", other = "deflated.txt";
  std::memcpy(bytes.data() + text.rfind(name), other.data(), other.size());  // in the directory
  const std::string error = testing::error_of([&] { ZipReader(bytes, "twice.zip"); });
  EXPECT_TRUE(testing::contains(error, "\"deflated.txt\" twice")) << error;
}

TEST(Zip, AnEncryptedEntryIsAnErrorThatSaysSo) {
  auto bytes = bytes_of("plain.zip");
  const size_t header = text_of(bytes).find("PK\x01\x02");
  bytes[header + 8] |= std::byte{1};  // a flag
  const ZipReader zip(bytes, "secret.zip");
  const std::string error = testing::error_of([&] { zip.read(zip.entries()[0], 100); });
  EXPECT_TRUE(testing::contains(error, "secret.zip: stored.txt: expected an entry without encryption")) << error;
}

// Each of both numbers of volumes is at its place in the end record.
TEST(Zip, AnArchiveInSeveralVolumesIsAnErrorThatSaysSo) {
  for (const size_t field : {4, 6}) {
    auto bytes = bytes_of("plain.zip");
    bytes[bytes.size() - 22 + field] = std::byte{1};
    const std::string error = testing::error_of([&] { ZipReader(bytes, "volume.zip"); });
    EXPECT_TRUE(testing::contains(error, "volume.zip: expected a zip archive in one volume")) << error;
  }
}

TEST(Zip, OtherCompressionIsAnErrorThatNamesItsMethod) {
  const auto bytes = bytes_of("plain.zip");
  const ZipReader zip(bytes, "new.zip");
  for (const uint16_t method : {1, 9, 12, 93}) {
    ZipEntry entry = *zip.find("deflated.txt");
    entry.method = method;
    const std::string want = "new.zip: deflated.txt: expected a stored or deflated zip entry, got compression method ";
    EXPECT_EQ(testing::error_of([&] { zip.read(entry, 4000); }), want + std::to_string(method));
    EXPECT_EQ(testing::error_of([&] { zip.read_beginning(entry, 4); }), want + std::to_string(method));
  }
}

TEST(Zip, ChangedBytesGiveAnErrorOrContentButNoCrash) {
  for (const char* name : {"plain.zip", "zip64.zip"}) {
    const auto bytes = bytes_of(name);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
        std::vector<std::byte> changed = bytes;
        changed[at] ^= static_cast<std::byte>(flip);
        try {
          const ZipReader zip(changed, "changed.zip");
          for (const ZipEntry& entry : zip.entries()) zip.read(entry, 1 << 20);
        } catch (const Error&) {
        }
      }
    }
  }
}

TEST(Zip, ADamagedStoredEntryFailsItsCrc) {
  auto bytes = bytes_of("plain.zip");
  const size_t at = text_of(bytes).find("kept as it is");
  bytes[at] = std::byte{'K'};
  const ZipReader zip(bytes, "plain.zip");
  EXPECT_THROW(zip.read(*zip.find("stored.txt"), 100), Error);
}

TEST(Zip, TheSharedDatasetArchiveIsListed) {
  VITRAIL_NEED_ASSETS(assets);
  const auto path = assets / "cifar10/cifar10_jpeg.zip";
  const MappedFile file(path);
  const ZipReader zip(file.bytes(), path.string());
  size_t files = 0;
  for (const ZipEntry& entry : zip.entries()) files += !entry.is_folder();
  EXPECT_GE(files, 60000u);
  EXPECT_FALSE(zip.read(*std::find_if(zip.entries().begin(), zip.entries().end(),
                                      [](const ZipEntry& e) { return !e.is_folder(); }),
                        1 << 20)
                   .empty());
}

}  // namespace
}  // namespace vitrail
