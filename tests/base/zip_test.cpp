// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_internal.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "tests/base/contents.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail {
namespace {

using testing::text_of;

std::vector<std::byte> fixture_bytes(const std::string& name) {
  const MappedFile file(testing::fixture("base/" + name));
  return {file.bytes().begin(), file.bytes().end()};
}

// Python's zipfile wrote the fixtures: "stored.txt" and "deflated.txt" with known text, a folder and an empty file.
TEST(Zip, ListsAndReadsEntriesOfPythonsZipfile) {
  for (const char* name : {"plain.zip", "zip64.zip", "commented.zip"}) {
    const auto bytes = fixture_bytes(name);
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
  const auto bytes = fixture_bytes("plain.zip");
  const ZipReader zip(bytes, "plain.zip");
  EXPECT_THROW(zip.read(*zip.find("deflated.txt"), 2999), Error);
}

TEST(Zip, ASizeAboveTheMaximumDeflateRatioIsAnErrorBeforeAllocation) {
  const auto bytes = fixture_bytes("plain.zip");
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
  const auto bytes = fixture_bytes("zip64.zip");
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
  auto bytes = fixture_bytes("zip64.zip");
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
  const auto bytes = fixture_bytes("plain.zip");
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
  auto bytes = fixture_bytes("plain.zip");
  const std::string text = text_of(bytes), name = "folder/empty", other = "deflated.txt";
  std::memcpy(bytes.data() + text.rfind(name), other.data(), other.size());  // in the directory
  const std::string error = testing::error_of([&] { ZipReader(bytes, "twice.zip"); });
  EXPECT_TRUE(testing::contains(error, "\"deflated.txt\" twice")) << error;
}

TEST(Zip, AnEncryptedEntryIsAnErrorThatSaysSo) {
  auto bytes = fixture_bytes("plain.zip");
  const size_t header = text_of(bytes).find("PK\x01\x02");
  bytes[header + 8] |= std::byte{1};  // a flag
  const ZipReader zip(bytes, "secret.zip");
  const std::string error = testing::error_of([&] { zip.read(zip.entries()[0], 100); });
  EXPECT_TRUE(testing::contains(error, "secret.zip: stored.txt: expected an entry without encryption")) << error;
}

// Each of both numbers of volumes is at its place in the end record.
TEST(Zip, AnArchiveInSeveralVolumesIsAnErrorThatSaysSo) {
  for (const size_t field : {4, 6}) {
    auto bytes = fixture_bytes("plain.zip");
    bytes[bytes.size() - 22 + field] = std::byte{1};
    const std::string error = testing::error_of([&] { ZipReader(bytes, "volume.zip"); });
    EXPECT_TRUE(testing::contains(error, "volume.zip: expected a zip archive in one volume")) << error;
  }
}

TEST(Zip, OtherCompressionIsAnErrorThatNamesItsMethod) {
  const auto bytes = fixture_bytes("plain.zip");
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
    const auto bytes = fixture_bytes(name);
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
  auto bytes = fixture_bytes("plain.zip");
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

std::string little(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

uint32_t crc_of(const std::string& text) {
  return static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

// An entry as it is written; sizes and offset are those of the content unless they are given.
struct Entry {
  std::string name, content;
  uint16_t method = 0, flags = 0;
  std::optional<uint32_t> crc = {}, compressed = {}, size = {}, offset = {};
  std::string local_extra = {}, extra = {}, comment = {};
};

std::string archive_of(const std::vector<Entry>& entries, const std::string& comment = "",
                       const std::map<int, uint64_t>& end_fields = {}) {
  std::string bytes, directory;
  for (const Entry& e : entries) {
    const auto at = static_cast<uint32_t>(bytes.size()), length = static_cast<uint32_t>(e.content.size());
    // The local header's own values differ: those of the directory count.
    bytes += "PK\3\4" + little(20, 2) + little(0, 2) + little(99, 2) + little(0, 4) + little(1, 4) + little(2, 4) +
             little(3, 4) + little(e.name.size(), 2) + little(e.local_extra.size(), 2) + e.name + e.local_extra +
             e.content;
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + little(e.flags, 2) + little(e.method, 2) + little(7, 4) +
                 little(e.crc.value_or(crc_of(e.content)), 4) + little(e.compressed.value_or(length), 4) +
                 little(e.size.value_or(length), 4) + little(e.name.size(), 2) + little(e.extra.size(), 2) +
                 little(e.comment.size(), 2) + little(0, 2) + little(5, 2) + little(6, 4) +
                 little(e.offset.value_or(at), 4) + e.name + e.extra + e.comment;
  }
  std::string end = "PK\5\6" + little(0, 2) + little(0, 2) + little(entries.size(), 2) + little(entries.size(), 2) +
                    little(directory.size(), 4) + little(bytes.size(), 4) + little(comment.size(), 2);
  for (const auto& [at, value] : end_fields)
    end.replace(static_cast<size_t>(at), at < 12 ? 2 : 4, little(value, at < 12 ? 2 : 4));
  return bytes + directory + end + comment;
}

class MadeZip {
 public:
  explicit MadeZip(const std::string& bytes) : bytes_(bytes), zip_(std::as_bytes(std::span(bytes_)), "made.zip") {}
  const ZipReader* operator->() const { return &zip_; }

 private:
  std::string bytes_;
  ZipReader zip_;
};

std::string archive_error(const std::string& archive) {
  return testing::error_of([&] { MadeZip{archive}; });
}

TEST(Zip, EntriesHaveTheFieldsOfTheDirectory) {
  const MadeZip zip(archive_of({{.name = "a/first", .content = "abc", .local_extra = "12345", .comment = "of first"},
                                {.name = "a/", .content = ""},
                                {.name = "c",
                                 .content = "defgh",
                                 .method = 8,
                                 .flags = 1,
                                 .crc = 77,
                                 .compressed = 5,
                                 .size = 900,
                                 .extra = std::string("\x09\0\x02\0xy", 6)}},
                               "a comment"));
  ASSERT_EQ(zip->entries().size(), 3u);
  const ZipEntry &first = zip->entries()[0], &folder = zip->entries()[1], &third = zip->entries()[2];
  EXPECT_EQ(first.name, "a/first");
  EXPECT_EQ(first.size, 3u);
  EXPECT_EQ(first.compressed_size, 3u);
  EXPECT_EQ(first.crc32, 891568578u) << "the CRC of abc";
  EXPECT_EQ(first.method, 0);
  EXPECT_EQ(first.header_offset, 0u);
  EXPECT_FALSE(first.encrypted);
  EXPECT_FALSE(first.is_folder());
  EXPECT_TRUE(folder.is_folder());
  EXPECT_EQ(folder.header_offset, 30u + 7 + 5 + 3);
  EXPECT_EQ(third.name, "c");
  EXPECT_EQ(third.size, 900u);
  EXPECT_EQ(third.compressed_size, 5u);
  EXPECT_EQ(third.crc32, 77u);
  EXPECT_EQ(third.method, 8);
  EXPECT_TRUE(third.encrypted);
  EXPECT_EQ(text_of(zip->read(first, 3)), "abc");
  EXPECT_EQ(zip->find("a/first"), &first);
  EXPECT_EQ(zip->find("c"), &third);
  EXPECT_EQ(zip->find("a"), nullptr);
}

TEST(Zip, OtherFlagsAreNoEncryption) {
  const MadeZip zip(archive_of({{.name = "a", .content = "x", .flags = 0xfffe}}));
  EXPECT_FALSE(zip->entries()[0].encrypted);
}

// The field holds the values that are 0xffffffff in the header, in the order size, compressed size, offset.
TEST(Zip, AZip64FieldHoldsTheValuesThatTheHeaderLacks) {
  const auto field = [](std::initializer_list<uint64_t> values) {
    std::string text = little(1, 2) + little(8 * values.size(), 2);
    for (const uint64_t value : values) text += little(value, 8);
    return text;
  };
  const std::string other = little(0x5455, 2) + little(3, 2) + "abc";
  const uint32_t none = 0xffffffff;
  const uint64_t large = uint64_t{5} << 33;
  const MadeZip zip(
      archive_of({{.name = "a", .content = "12", .size = none, .extra = other + field({large})},
                  {.name = "b", .content = "123", .compressed = none, .extra = field({large + 1}) + other},
                  {.name = "c", .content = "1234", .offset = none, .extra = field({large + 2})},
                  {.name = "d",
                   .content = "12345",
                   .compressed = none,
                   .size = none,
                   .offset = none,
                   .extra = field({7, 8, 9, 10})},
                  {.name = "e", .content = "123456", .extra = field({11})},
                  {.name = "f", .content = "x", .size = none, .extra = other + "xyz"},
                  {.name = "g", .content = "x", .size = none, .extra = little(9, 2) + little(200, 2) + field({5})}}));
  const auto entry = [&](const char* name) { return *zip->find(name); };
  EXPECT_EQ(entry("a").size, large);
  EXPECT_EQ(entry("a").compressed_size, 2u);
  EXPECT_EQ(entry("b").size, 3u);
  EXPECT_EQ(entry("b").compressed_size, large + 1);
  EXPECT_EQ(entry("c").size, 4u);
  EXPECT_EQ(entry("c").header_offset, large + 2);
  EXPECT_EQ(entry("d").size, 7u);
  EXPECT_EQ(entry("d").compressed_size, 8u);
  EXPECT_EQ(entry("d").header_offset, 9u);
  EXPECT_EQ(entry("e").size, 6u);
  EXPECT_EQ(entry("f").size, none) << "no field";
  EXPECT_EQ(entry("g").size, none) << "behind padding";
  EXPECT_ERROR(
      archive_error(archive_of({{.name = "h", .content = "x", .compressed = none, .size = none, .extra = field({1})}})),
      "made.zip", "a short one for h");
}

TEST(Zip, TheEndRecordIsFoundBehindAnyComment) {
  for (const size_t size : {0, 1, 100, 65534, 65535}) {
    const MadeZip zip(archive_of({{.name = "a", .content = "x"}}, std::string(size, 'c')));
    EXPECT_EQ(zip->entries().size(), 1u) << size;
  }
  const MadeZip inside(archive_of({{.name = "a", .content = "x"}}, "PK\5\6 is the signature, and 18 bytes follow it"));
  EXPECT_EQ(inside->entries().size(), 1u) << "a signature in the comment";
  const std::string far = archive_of({{.name = "a", .content = "x"}}, std::string(65535, 'c')) + "c";
  EXPECT_ERROR(archive_error(far), "made.zip", "no end record: the file is truncated or of another kind");
  EXPECT_ERROR(archive_error("PK"), "made.zip", "a file of 2 bytes");
  EXPECT_ERROR(archive_error(std::string(21, 'x')), "made.zip", "a file of 21 bytes");
  EXPECT_TRUE(MadeZip(archive_of({}))->entries().empty());
}

TEST(Zip, OtherDataMayFollowTheArchive) {
  const std::string archive = archive_of({{.name = "a", .content = "x"}}, "comment");
  for (const std::string& rest : {std::string("c"), std::string(65535 - 7, '\0'), std::string("PK\5\6")}) {
    const MadeZip zip(archive + rest);
    ASSERT_EQ(zip->entries().size(), 1u) << rest.size();
    EXPECT_EQ(text_of(zip->read(zip->entries()[0], 1)), "x");
  }
}

// A program that unpacks itself.
TEST(Zip, OtherDataMayPrecedeTheArchive) {
  const std::string archive = archive_of({{.name = "a", .content = "x"}, {.name = "b", .content = "yz"}}, "comment");
  for (const std::string& front : {std::string("#"), std::string(5000, '\0'), archive}) {
    const MadeZip zip(front + archive);
    ASSERT_EQ(zip->entries().size(), 2u) << front.size();
    EXPECT_EQ(text_of(zip->read(zip->entries()[1], 2)), "yz");
    EXPECT_EQ(zip->stored(zip->entries()[0])[0], std::byte{'x'});
  }
}

TEST(Zip, LinksAreKnownByTheModeOfUnix) {
  std::string bytes = archive_of({{.name = "a", .content = "x"}});
  const size_t at = bytes.find("PK\1\2");
  bytes[at + 41] = '\xa1';
  EXPECT_FALSE(MadeZip(bytes)->entries()[0].is_link) << "of another system";
  bytes[at + 5] = 3;
  EXPECT_TRUE(MadeZip(bytes)->entries()[0].is_link);
  bytes[at + 41] = '\x81';
  EXPECT_FALSE(MadeZip(bytes)->entries()[0].is_link) << "a file";
}

TEST(Zip, ADirectoryThatDoesNotFitIsAnErrorThatSaysWhy) {
  const std::vector<Entry> two{{.name = "a", .content = "x"}, {.name = "bc", .content = "yz"}};
  // The directory has 46 + 1 and 46 + 2 bytes, behind the local headers of 30 + 2 and 30 + 4.
  EXPECT_ERROR(archive_error(archive_of(two, "", {{10, 3}})), "made.zip", "3");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{12, 94}})), "made.zip", "one at byte 113");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{12, 92}})), "made.zip", "something else");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{16, 65}})), "made.zip", "something else");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{16, 200}})), "made.zip", "95 bytes at 200");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{16, 89}})), "made.zip", "95 bytes at 89");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{4, 1}})), "made.zip", "several");
  EXPECT_ERROR(archive_error(archive_of(two, "", {{6, 256}})), "made.zip", "several");
  EXPECT_ERROR(archive_error(archive_of({{.name = "a", .content = "x"}, {.name = "a", .content = "y"}})), "made.zip",
               "\"a\" twice");
  EXPECT_EQ(MadeZip(archive_of(two, "", {{10, 1}}))->entries().size(), 1u) << "as many as the record says";
}

TEST(Zip, AnEntryThatIsNotInTheFileIsAnErrorThatSaysWhy) {
  const auto error = [](const Entry& entry) {
    const MadeZip zip(archive_of({{.name = "first", .content = "x"}, entry}));
    const std::string text = testing::error_of([&] { zip->stored(zip->entries()[1]); });
    EXPECT_EQ(testing::error_of([&] { zip->read(zip->entries()[1], 1 << 20); }), text);
    return text;
  };
  // 36 bytes of the first entry, 30 + 1 + 3 of the second, directories of 51 and 47, the end of 22.
  EXPECT_ERROR(error({.name = "b", .content = "abc", .offset = 35}), "made.zip: b",
               "none: the file is truncated or damaged");
  EXPECT_ERROR(error({.name = "b", .content = "abc", .offset = 161}), "made.zip: b",
               "none: the file is truncated or damaged");
  EXPECT_ERROR(error({.name = "b", .content = "abc", .offset = 1000}), "made.zip: b",
               "none: the file is truncated or damaged");
  EXPECT_ERROR(error({.name = "b", .content = "abc", .compressed = 124, .size = 124}), "made.zip: b",
               "a start at byte 67 of 190: the file is truncated or damaged");
  EXPECT_ERROR(error({.name = "b", .content = "abc", .flags = 1}), "made.zip: b", "an encrypted one");
  EXPECT_ERROR(error({.name = "b", .content = "abc", .size = 4}), "made.zip: b", "method 0");
  const MadeZip whole(
      archive_of({{.name = "first", .content = "x"}, {.name = "b", .content = "abc", .compressed = 123, .size = 123}}));
  EXPECT_EQ(whole->stored(whole->entries()[1]).size(), 123u) << "to the end of the file";
}

TEST(Zip, TheChecksumAndTheSizeAreCheckedWhereAnEntryIsRead) {
  const MadeZip zip(archive_of({{.name = "good", .content = "abc"},
                                {.name = "bad", .content = "abc", .crc = 5},
                                {.name = "none", .content = "abc", .crc = 0}}));
  const ZipEntry &good = zip->entries()[0], &bad = zip->entries()[1], &none = zip->entries()[2];
  EXPECT_EQ(text_of(zip->read(good, 3)), "abc");
  EXPECT_ERROR(testing::error_of([&] { zip->read(good, 2); }), "made.zip: good", "3");
  const std::string damaged = "expected a CRC of 5, got 891568578: the entry is damaged";
  EXPECT_EQ(testing::error_of([&] { zip->read(bad, 3); }), "made.zip: bad: " + damaged);
  EXPECT_EQ(testing::error_of([&] { zip->check_stored(bad); }), "made.zip: bad: " + damaged);
  EXPECT_NO_THROW(zip->check_stored(good));
  EXPECT_NO_THROW(zip->check_stored(none)) << "an entry without a checksum";
  EXPECT_ERROR(testing::error_of([&] { zip->read(none, 3); }), "made.zip: none", "891568578: the entry is damaged");
  EXPECT_EQ(text_of(zip->read_beginning(bad, 2)), "ab") << "a beginning has no checksum";
  EXPECT_EQ(text_of(zip->read_beginning(bad, 100)), "abc");
  EXPECT_EQ(zip->stored(bad).size(), 3u);
}

// The record is at byte 79, its locator at byte 135 and the end record at byte 155.
TEST(Zip, AZip64EndRecordIsAtThePlaceThatItsLocatorTells) {
  const std::string plain = archive_of({{.name = "a", .content = "x"}}), body = plain.substr(0, plain.size() - 22);
  ASSERT_EQ(body.size(), 79u);
  const auto with = [&](uint64_t place, uint64_t count, uint64_t size, uint64_t offset) {
    return body + "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) +
           little(77, 8) + little(count, 8) + little(size, 8) + little(offset, 8) + "PK\6\7" + little(0, 4) +
           little(place, 8) + little(1, 4) + "PK\5\6" + little(0xffff, 2) + little(0xffff, 2) + little(0xffff, 2) +
           little(0xffff, 2) + little(0xffffffff, 4) + little(0xffffffff, 4) + little(0, 2);
  };
  const MadeZip zip(with(79, 1, 47, 32));
  ASSERT_EQ(zip->entries().size(), 1u);
  EXPECT_EQ(text_of(zip->read(zip->entries()[0], 1)), "x");
  const MadeZip moved("front" + with(79, 1, 47, 32));
  ASSERT_EQ(moved->entries().size(), 1u);
  EXPECT_EQ(text_of(moved->read(moved->entries()[0], 1)), "x");
  for (const uint64_t place :
       {uint64_t{0}, uint64_t{78}, uint64_t{80}, uint64_t{135}, uint64_t{136}, uint64_t{1} << 60})
    EXPECT_EQ(archive_error(with(place, 1, 47, 32)),
              str("made.zip: expected a zip64 end record, got none at byte ", place));
  EXPECT_ERROR(archive_error(with(79, 2, 47, 32)), "made.zip", "2");
  EXPECT_ERROR(archive_error(with(79, 1, uint64_t{1} << 40, 32)), "made.zip", "1099511627776 bytes at 32");
  EXPECT_ERROR(archive_error(with(79, 1, 47, uint64_t{1} << 40)), "made.zip", "47 bytes at 1099511627776");
}

}  // namespace
}  // namespace vitrail
