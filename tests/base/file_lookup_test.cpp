// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/file_lookup_internal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

TEST(FileLookup, TellsFoldersFromOtherPaths) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "file") << "x";
  fs::create_directory_symlink(folder, folder / "to_folder");
  fs::create_symlink("file", folder / "to_file");
  fs::create_symlink("absent", folder / "to_nothing");
  const std::pair<fs::path, PathKind> cases[] = {{folder, PathKind::folder},
                                                 {folder / "to_folder", PathKind::folder},
                                                 {folder / "file", PathKind::other},
                                                 {folder / "to_file", PathKind::other},
                                                 {"/dev/null", PathKind::other},
                                                 {folder / "absent", PathKind::missing},
                                                 {folder / "to_nothing", PathKind::missing},
                                                 {folder / "file" / "x", PathKind::missing}};
  for (const auto& [path, kind] : cases) {
    EXPECT_EQ(look_up(path), kind) << path;
    EXPECT_EQ(is_present(path), kind != PathKind::missing) << path;
    EXPECT_EQ(is_folder(path), kind == PathKind::folder) << path;
  }
}

TEST(FileLookup, WhatCannotBeFoundOutIsAnErrorWithTheReason) {
  const fs::path folder = testing::scratch_folder(), large = folder / std::string(300, 'x');
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(testing::error_of([&] { look_up(folder / "loop"); }),
            (folder / "loop").string() + ": cannot be opened: Too many levels of symbolic links");
  EXPECT_EQ(testing::error_of([&] { look_up(large); }), large.string() + ": cannot be opened: File name too long");
}

}  // namespace
}  // namespace vitrail
