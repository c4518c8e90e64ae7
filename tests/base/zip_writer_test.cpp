// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_writer_internal.h"

#include <gtest/gtest.h>

#include "tests/base/contents.h"
#include "tests/support/paths.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/zip_internal.h"

namespace vitrail {
namespace {

using testing::text_of;

// read() checks the CRC of each entry.
TEST(ZipWriter, WritesEntriesThatTheReaderGivesBack) {
  const auto path = testing::scratch_folder() / "a.zip";
  const std::string large(200'000, 'x');
  ZipWriter writer(path);
  writer.begin("first.txt");
  writer.write("12", 2);
  writer.write("345", 3);
  writer.end();
  writer.begin("empty");
  writer.end();
  writer.begin("folder/ä.bin", 6);
  writer.write(large.data(), large.size());
  writer.write("end", 3);
  writer.end("front-");
  writer.begin("front only", 4);
  writer.end("1234");
  EXPECT_FALSE(std::filesystem::exists(path)) << "before commit()";
  writer.commit();

  const MappedFile file(path);
  const ZipReader zip(file.bytes(), "a.zip");
  ASSERT_EQ(zip.entries().size(), 4u);
  const std::pair<const char*, std::string> want[] = {
      {"first.txt", "12345"}, {"empty", ""}, {"folder/ä.bin", "front-" + large + "end"}, {"front only", "1234"}};
  for (size_t i = 0; i < 4; ++i) {
    const ZipEntry& entry = zip.entries()[i];
    EXPECT_EQ(entry.name, want[i].first);
    EXPECT_EQ(text_of(zip.read(entry, 300'000)), want[i].second);
    EXPECT_NO_THROW(zip.check_stored(entry));
    for (const uint64_t count : {0, 1, 3, 1'000'000})
      EXPECT_EQ(text_of(zip.read_beginning(entry, count)), want[i].second.substr(0, count)) << entry.name;
  }
}

TEST(ZipWriter, AnArchiveWithoutEntriesIsEmpty) {
  const auto path = testing::scratch_folder() / "a.zip";
  ZipWriter(path).commit();
  const MappedFile file(path);
  EXPECT_TRUE(ZipReader(file.bytes(), "a.zip").entries().empty());
}

TEST(ZipWriter, EqualContentGivesEqualBytes) {
  std::string bytes[2];
  for (std::string& of_file : bytes) {
    const auto path = testing::scratch_folder() / "a.zip";
    ZipWriter writer(path);
    writer.begin("x");
    writer.write("y", 1);
    writer.end();
    writer.commit();
    const MappedFile file(path);
    of_file.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// PKWARE's APPNOTE, sections 4.3.7 to 4.3.16: every field of an archive with two entries.
TEST(ZipWriter, WritesTheRecordsOfTheFormat) {
  const auto path = testing::scratch_folder() / "a.zip";
  ZipWriter writer(path);
  writer.begin("ab", 2);
  writer.write("xyz", 3);
  writer.end("uv");
  writer.begin("c");
  writer.end();
  writer.commit();
  const auto little = [](uint64_t value, size_t size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
  };
  // Version 4.5, flag 11 (UTF-8), stored, midnight of 1 January 1980, CRC, sizes in the extra field, length of the
  // name.
  const auto common = [&](uint32_t crc, size_t name) {
    return little(45, 2) + little(0x800, 2) + little(0, 2) + little(0, 2) + little(33, 2) + little(crc, 4) +
           little(0xffffffff, 4) + little(0xffffffff, 4) + little(name, 2);
  };
  const auto local = [&](uint32_t crc, const std::string& name, uint64_t size) {
    return "PK\3\4" + common(crc, name.size()) + little(20, 2) + name + little(1, 2) + little(16, 2) + little(size, 8) +
           little(size, 8);
  };
  const auto central = [&](uint32_t crc, const std::string& name, uint64_t size, uint64_t offset) {
    return "PK\1\2" + little(45, 2) + common(crc, name.size()) + little(28, 2) + little(0, 2) + little(0, 2) +
           little(0, 2) + little(0, 4) + little(0xffffffff, 4) + name + little(1, 2) + little(24, 2) + little(size, 8) +
           little(size, 8) + little(offset, 8);
  };
  const uint32_t crc = 0xad8b0497;  // that of "uvxyz"
  std::string want = local(crc, "ab", 5) + "uvxyz";
  const uint64_t second = want.size();
  want += local(0, "c", 0);
  const uint64_t directory = want.size();
  const std::string entries = central(crc, "ab", 5, 0) + central(0, "c", 0, second);
  want += entries;
  const uint64_t end = want.size();
  want += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) + little(2, 8) +
          little(2, 8) + little(entries.size(), 8) + little(directory, 8);
  want += "PK\6\7" + little(0, 4) + little(end, 8) + little(1, 4);
  want += "PK\5\6" + little(0, 4) + little(0xffff, 2) + little(0xffff, 2) + little(0xffffffff, 4) +
          little(0xffffffff, 4) + little(0, 2);
  const MappedFile file(path);
  const std::string got(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  EXPECT_EQ(::testing::PrintToString(got), ::testing::PrintToString(want));
}

}  // namespace
}  // namespace vitrail
