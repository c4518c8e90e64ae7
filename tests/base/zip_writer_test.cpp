// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/zip_writer_internal.h"

#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/zip_internal.h"

namespace vitrail {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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

}  // namespace
}  // namespace vitrail
