// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/tar_internal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

using testing::contains;
using testing::error_of;

std::string content_of(const std::string& fixture) {
  std::ifstream file(testing::fixture("base/" + fixture), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TarListing read(const std::string& archive) { return read_tar(bytes_of(archive), "a.tar"); }

std::string refusal(const std::string& archive) {
  return error_of([&] { read(archive); });
}

// Makes the checksum of the header at `offset` right.
void fix_checksum(std::string& archive, size_t offset = 0) {
  archive.replace(offset + 148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(archive[offset + i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  archive.replace(offset + 148, 7, text, 7);
}

TEST(Tar, FilesAreThoseOfPythonsTarfile) {
  const auto expected = nlohmann::json::parse(content_of("tar.json"));
  for (const auto& [name, files] : expected.items()) {
    const std::string archive = content_of(name + ".tar");
    EXPECT_TRUE(is_tar(bytes_of(archive)));
    const TarListing listing = read(archive);
    std::map<std::string, std::string> contents;
    std::vector<std::string> folders;
    for (const TarEntry& entry : listing.entries) {
      if (entry.path.ends_with('/')) {
        folders.push_back(entry.path);
      } else {
        contents[entry.path] = archive.substr(entry.offset, entry.size);
      }
    }
    EXPECT_EQ(contents, (files.get<std::map<std::string, std::string>>())) << name;
    EXPECT_EQ(contents["twice.txt"], "second");
    EXPECT_EQ(folders, std::vector<std::string>{"folder/"}) << name;
    EXPECT_EQ(listing.symbolic_links, 1) << name;
  }
}

TEST(Tar, ASizeMayBeABinaryNumber) {
  std::string archive = content_of("ustar.tar");
  const size_t header = 512;  // that of a.txt, with 513 bytes
  archive.replace(header + 124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\x02\x01", 12));
  fix_checksum(archive, header);
  EXPECT_EQ(read(archive).entries.at(1).size, 513u);
}

TEST(Tar, DamagedArchivesAreErrors) {
  const std::string archive = content_of("pax.tar");
  EXPECT_FALSE(is_tar(bytes_of("text")));
  EXPECT_FALSE(is_tar(bytes_of(std::string(1024, '\0'))));
  EXPECT_TRUE(contains(refusal(archive.substr(0, 700)), "a.tar: expected a complete archive"));
  EXPECT_TRUE(contains(refusal(archive.substr(0, 1200)), "expected a complete archive: 513 bytes"));
  std::string damaged = archive;
  damaged[3] ^= 1;
  EXPECT_TRUE(contains(refusal(damaged), "expected a tar header, got other data at byte 0"));
  damaged = archive;
  damaged[156] = 'S';
  fix_checksum(damaged);
  EXPECT_TRUE(contains(refusal(damaged), "sparse"));
  for (const char* size : {"77777777777", "-0000000001", "0000009"}) {
    damaged = content_of("ustar.tar");
    damaged.replace(512 + 124, 12, 12, '\0');
    damaged.replace(512 + 124, std::string(size).size(), size);
    fix_checksum(damaged, 512);
    EXPECT_FALSE(refusal(damaged).empty()) << size;
  }
}

TEST(Tar, DamagedExtendedHeadersAreErrors) {
  const std::string archive = content_of("pax.tar");
  const size_t record = archive.find(" path=");
  ASSERT_NE(record, std::string::npos);
  for (const char digit : {'9', 'x', '0'}) {
    std::string damaged = archive;
    damaged[record - 1] = damaged[record - 2] = damaged[record - 3] = digit;
    EXPECT_TRUE(contains(refusal(damaged), "expected a pax header")) << digit;
  }
  std::string damaged = archive;
  const size_t size = archive.find(" size=5");
  ASSERT_NE(size, std::string::npos);
  damaged[size + 6] = '/';
  EXPECT_TRUE(contains(refusal(damaged), "expected the size of a file")) << refusal(damaged);
}

// Archives without blocks of zeros at the end are read as other programs do.
TEST(Tar, TheEndNeedsNoZeros) {
  const std::string archive = content_of("ustar.tar");
  EXPECT_EQ(read(archive.substr(0, archive.size() - 1024)).entries.size(), read(archive).entries.size());
}

// A header with this name, type and size.
std::string header_of(const std::string& name, char type, size_t size, const std::string& link = "") {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char octal[32];
  std::snprintf(octal, sizeof octal, "%011zo", size);
  header.replace(124, 11, octal, 11);
  header[156] = type;
  header.replace(157, link.size(), link);
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  fix_checksum(header);
  return header;
}

std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

std::vector<std::string> paths_of(const TarListing& listing) {
  std::vector<std::string> paths;
  for (const TarEntry& entry : listing.entries) paths.push_back(entry.path);
  return paths;
}

// GNU tar's own format ("ustar" and two spaces) has times where ustar has a prefix of the name.
TEST(Tar, GnuHeadersHaveNoPrefix) {
  for (const bool gnu : {false, true}) {
    std::string archive = header_of("a.txt", '0', 0);
    if (gnu) archive.replace(257, 8, "ustar  ", 8);
    archive.replace(345, 12, std::string("14412345670\0", 12));
    fix_checksum(archive);
    EXPECT_EQ(paths_of(read(archive)), std::vector<std::string>{gnu ? "a.txt" : "14412345670/a.txt"});
  }
}

TEST(Tar, PathsLeaveOutWhatPrecedesTheFirstName) {
  std::string archive;
  for (const char* name : {"./a", "/b", ".//./c", "d/./e", ".", "./", "../f", ".g"}) archive += header_of(name, '0', 0);
  EXPECT_EQ(paths_of(read(archive)), (std::vector<std::string>{"a", "b", "c", "d/./e", "../f", ".g"}));
}

TEST(Tar, LinksHaveTheContentOfAnEarlierFileAndOthersAreLeftOut) {
  const std::string archive = header_of("a", '0', 3) + padded("abc") + header_of("b", '1', 3, "./a") +
                              header_of("c", '1', 0, "absent") + header_of("d", '2', 0, "a") + header_of("e", '3', 0) +
                              header_of("f", '6', 0) + header_of("folder", '5', 0) + header_of("old/", '\0', 0) +
                              header_of("g", '7', 1) + padded("g");
  const TarListing listing = read(archive);
  EXPECT_EQ(paths_of(listing), (std::vector<std::string>{"a", "b", "folder/", "old/", "g"}));
  EXPECT_EQ(listing.entries[1].offset, 512u);
  EXPECT_EQ(listing.entries[1].size, 3u);
  EXPECT_EQ(archive.substr(listing.entries[4].offset, listing.entries[4].size), "g");
  EXPECT_EQ(listing.symbolic_links, 1);
}

TEST(Tar, AnExtendedHeaderIsThatOfTheNextFileOnly) {
  const std::string size = "10 size=5\n";
  const std::string archive = header_of("x", 'x', 15) + padded("15 path=longer\n") + header_of("a", '0', 1) +
                              padded("1") + header_of("b", '0', 1) + padded("2") + header_of("x", 'x', size.size()) +
                              padded(size) + header_of("c", '0', 0) + padded("12345") + header_of("x", 'L', 7) +
                              padded(std::string("gnu\0xyz", 7)) + header_of("d", '0', 0) + header_of("e", '0', 0);
  const TarListing listing = read(archive);
  EXPECT_EQ(paths_of(listing), (std::vector<std::string>{"longer", "b", "c", "gnu", "e"}));
  EXPECT_EQ(archive.substr(listing.entries[2].offset, listing.entries[2].size), "12345");
}

TEST(Tar, HugeNumbersAndNamesAreErrors) {
  std::string archive = header_of("a", '0', 0);
  archive.replace(124, 12, 12, '\xff');
  fix_checksum(archive);
  EXPECT_TRUE(contains(refusal(archive), "expected the size of a file"));
  archive = header_of("x", 'x', (1 << 20) + 1) + std::string(3 << 20, ' ');
  EXPECT_TRUE(contains(refusal(archive), "expected a name of at most 1048576 bytes"));
}

}  // namespace
}  // namespace vitrail
