// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/tar_internal.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/base/contents.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

using testing::bytes_of;
using testing::contains;
using testing::error_of;

std::string fixture_content(const std::string& name) { return testing::content_of(testing::fixture("base/" + name)); }

TarListing listing_of(const std::string& archive) { return read_tar(bytes_of(archive), "a.tar"); }

std::string refusal(const std::string& archive) {
  return error_of([&] { listing_of(archive); });
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
  const auto expected = nlohmann::json::parse(fixture_content("tar.json"));
  for (const auto& [name, files] : expected.items()) {
    const std::string archive = fixture_content(name + ".tar");
    EXPECT_TRUE(is_tar(bytes_of(archive)));
    const TarListing listing = listing_of(archive);
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
  std::string archive = fixture_content("ustar.tar");
  const size_t header = 512;  // that of a.txt, with 513 bytes
  archive.replace(header + 124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\x02\x01", 12));
  fix_checksum(archive, header);
  EXPECT_EQ(listing_of(archive).entries.at(1).size, 513u);
}

TEST(Tar, DamagedArchivesAreErrors) {
  const std::string archive = fixture_content("pax.tar");
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
    damaged = fixture_content("ustar.tar");
    damaged.replace(512 + 124, 12, 12, '\0');
    damaged.replace(512 + 124, std::string(size).size(), size);
    fix_checksum(damaged, 512);
    EXPECT_FALSE(refusal(damaged).empty()) << size;
  }
}

TEST(Tar, DamagedExtendedHeadersAreErrors) {
  const std::string archive = fixture_content("pax.tar");
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
  const std::string archive = fixture_content("ustar.tar");
  EXPECT_EQ(listing_of(archive.substr(0, archive.size() - 1024)).entries.size(), listing_of(archive).entries.size());
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
    EXPECT_EQ(paths_of(listing_of(archive)), std::vector<std::string>{gnu ? "a.txt" : "14412345670/a.txt"});
  }
}

TEST(Tar, PathsLeaveOutWhatPrecedesTheFirstName) {
  std::string archive;
  for (const char* name : {"./a", "/b", ".//./c", "d/./e", ".", "./", "../f", ".g"}) archive += header_of(name, '0', 0);
  EXPECT_EQ(paths_of(listing_of(archive)), (std::vector<std::string>{"a", "b", "c", "d/./e", "../f", ".g"}));
}

TEST(Tar, LinksHaveTheContentOfAnEarlierFileAndOthersAreLeftOut) {
  const std::string archive = header_of("a", '0', 3) + padded("abc") + header_of("b", '1', 3, "./a") +
                              header_of("c", '1', 0, "absent") + header_of("d", '2', 0, "a") + header_of("e", '3', 0) +
                              header_of("f", '6', 0) + header_of("folder", '5', 0) + header_of("old/", '\0', 0) +
                              header_of("g", '7', 1) + padded("g");
  const TarListing listing = listing_of(archive);
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
  const TarListing listing = listing_of(archive);
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

TEST(Tar, IsKnownByTheChecksumOfItsFirstBlock) {
  const std::string header = header_of("a", '0', 0);
  EXPECT_TRUE(is_tar(bytes_of(header)));
  EXPECT_TRUE(is_tar(bytes_of(header + "x")));
  EXPECT_FALSE(is_tar(bytes_of(header.substr(0, 511))));
  EXPECT_FALSE(is_tar(bytes_of("")));
  for (const size_t at : {0, 100, 147, 156, 300, 511}) {
    std::string changed = header;
    changed[at] ^= 2;
    EXPECT_FALSE(is_tar(bytes_of(changed))) << at;
  }
  std::string spaces = header;  // as old programs write numbers
  spaces[148] = ' ';
  EXPECT_TRUE(is_tar(bytes_of(spaces)));
  std::string high = header;
  high[400] = '\xff';  // a byte counts as a number from 0 to 255
  fix_checksum(high);
  EXPECT_TRUE(is_tar(bytes_of(high)));
}

TEST(Tar, EntriesFollowEachOtherInBlocksOf512) {
  std::string archive;
  for (const size_t size : {0, 1, 511, 512, 513, 1024, 1025})
    archive += header_of("f" + std::to_string(size), '0', size) + padded(std::string(size, 'x'));
  const TarListing listing = listing_of(archive + std::string(1024, '\0') + "what is behind the end");
  uint64_t at = 0;
  const uint64_t sizes[] = {0, 1, 511, 512, 513, 1024, 1025};
  ASSERT_EQ(listing.entries.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(listing.entries[i].path, "f" + std::to_string(sizes[i]));
    EXPECT_EQ(listing.entries[i].offset, at + 512) << i;
    EXPECT_EQ(listing.entries[i].size, sizes[i]) << i;
    at += 512 + (sizes[i] + 511) / 512 * 512;
  }
  EXPECT_EQ(listing.symbolic_links, 0);
}

TEST(Tar, LinksAndDirectoriesHaveNoContent) {
  for (const char type : {'1', '2', '5'}) {  // their size may be that of what they refer to
    const std::string archive =
        header_of("a", '0', 1) + padded("x") + header_of("b", type, 700, "a") + header_of("c", '0', 0);
    const std::vector<std::string> paths = paths_of(listing_of(archive));
    EXPECT_EQ(paths.back(), "c") << type;
  }
  const std::string device = header_of("b", '3', 3) + padded("abc") + header_of("c", '0', 0);
  EXPECT_EQ(paths_of(listing_of(device)), std::vector<std::string>{"c"}) << "what has content is skipped";
}

TEST(Tar, ALinkMayReferToALink) {
  const TarListing listing =
      listing_of(header_of("a", '0', 2) + padded("ab") + header_of("b", '1', 0, "a") + header_of("c", '1', 0, "b"));
  ASSERT_EQ(paths_of(listing), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(listing.entries[2].offset, 512u);
  EXPECT_EQ(listing.entries[2].size, 2u);
}

TEST(Tar, OfTwoFilesWithOnePathTheLastCountsInTheFirstsPlace) {
  const std::string archive = header_of("a", '0', 1) + padded("1") + header_of("b", '0', 1) + padded("2") +
                              header_of("a", '0', 2) + padded("33") + header_of("d", '5', 0) + header_of("d", '5', 0);
  const TarListing listing = listing_of(archive);
  EXPECT_EQ(paths_of(listing), (std::vector<std::string>{"a", "b", "d/", "d/"}));
  EXPECT_EQ(archive.substr(listing.entries[0].offset, listing.entries[0].size), "33");
}

TEST(Tar, ArchivesMayFollowEachOther) {
  const std::string end(1024, '\0'), first = header_of("a", '0', 1) + padded("1"),
                                     second = header_of("b", '0', 1) + padded("2");
  for (const size_t zeros : {512, 1024, 10240}) {
    const TarListing listing = listing_of(first + std::string(zeros, '\0') + second + end);
    EXPECT_EQ(paths_of(listing), (std::vector<std::string>{"a", "b"})) << zeros;
    EXPECT_EQ(listing.trailing, 0u) << zeros;
  }
  EXPECT_EQ(listing_of(first + end + std::string(100, '\0')).trailing, 0u);
  EXPECT_EQ(listing_of(first + end + "text").trailing, 4u);
  const TarListing broken = listing_of(first + end + std::string(512, 'x') + second);
  EXPECT_EQ(broken.entries.size(), 1u);
  EXPECT_EQ(broken.trailing, 512 + second.size());
}

std::string pax(const std::string& records) { return header_of("x", 'x', records.size()) + padded(records); }

TEST(Tar, LongNamesAndLinksAreThoseOfExtendedHeaders) {
  const std::string name(120, 'n'), target(130, 't');
  const auto gnu = [](char type, const std::string& text) {
    return header_of("././@LongLink", type, text.size() + 1) + padded(text + '\0');
  };
  const std::string file = header_of("short", '0', 1) + padded("1"), link = header_of("other", '1', 0, "elsewhere");
  EXPECT_EQ(paths_of(listing_of(gnu('L', target) + file + gnu('K', target) + gnu('L', name) + link)),
            (std::vector<std::string>{target, name}));
  EXPECT_EQ(paths_of(listing_of(pax("7 a=bc\n140 path=" + target + "\n") + file + pax("144 linkpath=" + target + "\n") +
                                link)),
            (std::vector<std::string>{target, "other"}));
  EXPECT_EQ(paths_of(listing_of(header_of("g", 'g', 14) + padded("14 path=global") + file)),
            std::vector<std::string>{"short"})
      << "a global header is skipped";
}

TEST(Tar, AFieldMayBeFull) {
  const std::string name(100, 'n');
  std::string archive = header_of(name, '0', 0);
  EXPECT_EQ(paths_of(listing_of(archive)), std::vector<std::string>{name});
  archive.replace(345, 155, std::string(155, 'p'));
  fix_checksum(archive);
  EXPECT_EQ(paths_of(listing_of(archive)), std::vector<std::string>{std::string(155, 'p') + "/" + name});
  archive.replace(257, 5, "other");  // before POSIX there was no prefix
  fix_checksum(archive);
  EXPECT_EQ(paths_of(listing_of(archive)), std::vector<std::string>{name});
}

TEST(Tar, TheErrorSaysWhatIsWrongAndWhere) {
  const std::string file = header_of("a", '0', 1) + padded("1");
  const std::pair<std::string, std::string> cases[] = {
      {file + "x", "a complete archive, got a part of a header at its end"},
      {file + std::string(512, 'x'), "a tar header, got other data at byte 1024"},
      {file + header_of("b", '0', 2), "a complete archive: 2 bytes at byte 1536, got 0 bytes"},
      {file + header_of("b", '0', 600) + std::string(512, 'y'),
       "a complete archive: 600 bytes at byte 1536, got 512 bytes"},
      {file + header_of("b", 'S', 0), "files without holes, got the sparse file b"},
      {pax("22 GNU.sparse.major=1\n") + file, "files without holes, got a sparse file"},
      {pax("12 size=1x2\n") + file, "the size of a file, got '1x2'"},
      {pax("28 size=1844674407370955162\n") + file,
       "a complete archive: 1844674407370955162 bytes at byte 1536, got 512 bytes"},
      {pax("29 size=18446744073709551616\n") + file, "the size of a file, got '18446744073709551616'"},

      {pax("2 \n") + file, "a pax header, got a damaged one before byte 512"},
      {pax("99 a=b\n") + file, "a pax header, got a damaged one before byte 512"},
      {pax("a=b\n") + file, "a pax header, got a damaged one before byte 512"},
      {pax("8 a=bc\n5 c=d\n") + file,
       "a pax header, got a damaged one before byte 512"},  // takes the next one's length
      {pax("7_a=bc\n") + file, "a pax header, got a damaged one before byte 512"},
      {pax("7 abcd\n") + file, "a pax header, got a damaged one before byte 512"}};
  for (const auto& [archive, want] : cases) EXPECT_EQ(refusal(archive), "a.tar: expected " + want);
  std::string size = file;
  size.replace(124, 11, "0000000009x");
  fix_checksum(size);
  EXPECT_ERROR(refusal(size), "a.tar", "no number before byte 512");
}

// A long name is limited, but a record may fill the limit.
TEST(Tar, AnExtendedHeaderHasAtMostAMebibyte) {
  const std::string record = "1048576 comment=" + std::string(1048576 - 17, 'c') + "\n";
  ASSERT_EQ(record.size(), 1048576u);
  EXPECT_EQ(paths_of(listing_of(pax(record) + header_of("a", '0', 0))), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace vitrail
