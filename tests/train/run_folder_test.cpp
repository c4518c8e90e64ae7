// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_folder_internal.h"

#include <sys/stat.h>

#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

TEST(RunFolder, PathsThatCannotBeFoldersAreErrorsThatNameThemAndTheReason) {
  const fs::path folder = testing::scratch_folder();
  fs::create_symlink("itself", folder / "itself");
  write_file(folder / "file", "text");
  const auto expect = [](const fs::path& path, const char* reason) {
    const std::string message = error_of([&] { const RunFolder run(path); });
    EXPECT_TRUE(contains(message, path.string()) && contains(message, reason)) << message;
  };
  expect(folder / "itself", "Too many levels of symbolic links");
  expect(folder / "itself/run", "Too many levels of symbolic links");
  expect(folder / std::string(300, 'n'), "File name too long");
  expect(folder / std::string(300, 'n') / "run", "File name too long");
  expect(folder / std::string(5000, 'n'), "File name too long");
  expect(folder / "file", "Not a directory");
  expect(folder / "file/run", "Not a directory");
  expect("/proc/run", "cannot be created");
  EXPECT_TRUE(fs::is_symlink(folder / "itself"));
}

TEST(RunFolder, ALinkToTheFolderItselfIsAllowed) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "disk");
  fs::create_directory_symlink(folder / "disk", folder / "run");
  const RunFolder run(folder / "run");
  EXPECT_FALSE(run.holds_run());
  EXPECT_TRUE(fs::exists(folder / "disk/checkpoints"));
}

TEST(RunFolder, OtherFilesAndLinksBesideTheRunAreKept) {
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "notes.txt", "text");
  fs::create_symlink("/nowhere", folder / "data");
  const RunFolder run(folder);
  run.remove_temporary_files();
  EXPECT_EQ(read_text(folder / "notes.txt"), "text");
  EXPECT_TRUE(fs::is_symlink(folder / "data"));
}

TEST(RunFolder, WhatAKilledProcessLeftIsRemoved) {
  const fs::path folder = testing::scratch_folder();
  const RunFolder run(folder);
  fs::create_directories(folder / "model");
  fs::create_directories(folder / "other");
  const std::string temporary = ".vitrail-0123456789abcdef.tmp";
  const fs::path left[] = {folder / temporary, folder / "model" / temporary,
                           folder / "checkpoints/last.safetensors.next",
                           folder / "checkpoints/previous.safetensors.link"};
  const fs::path kept[] = {folder / "recipe.json",
                           folder / "checkpoints/last.safetensors",
                           folder / "plan.next",
                           folder / "home.link",
                           folder / "model/config.json.next",
                           folder / "checkpoints/notes.next",
                           folder / "checkpoints/last.safetensors.link",
                           folder / "other/x.next"};
  for (const fs::path& file : left) write_file(file, "x");
  for (const fs::path& file : kept) write_file(file, "x");
  run.remove_temporary_files();
  for (const fs::path& file : left) EXPECT_FALSE(fs::exists(file)) << file;
  for (const fs::path& file : kept) EXPECT_TRUE(fs::exists(file)) << file;
}

TEST(RunFolder, OfARefusedRunIsRemovedAsFarAsItIsNew) {
  const fs::path folder = testing::scratch_folder();
  { const RunFolder run(folder / "a/b/run"); }
  EXPECT_FALSE(fs::exists(folder / "a"));
  fs::create_directories(folder / "a");
  write_file(folder / "a/notes.txt", "x");
  { const RunFolder run(folder / "a/run"); }
  EXPECT_TRUE(fs::exists(folder / "a/notes.txt"));
  EXPECT_FALSE(fs::exists(folder / "a/run"));
  {
    RunFolder run(folder / "a/run");
    run.keep();
  }
  EXPECT_TRUE(fs::exists(folder / "a/run/checkpoints"));
  { const RunFolder run(folder / "a/run"); }
  EXPECT_TRUE(fs::exists(folder / "a/run/checkpoints"));
}

TEST(RunFolder, ThatCannotBeCreatedLeavesNothingBehind) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_NE(error_of([&] { const RunFolder run(folder / "a/b" / std::string(300, 'n')); }), "");
  EXPECT_FALSE(fs::exists(folder / "a"));
  fs::create_directories(folder / "run/checkpoints/.lock");  // no file
  EXPECT_TRUE(contains(error_of([&] { const RunFolder run(folder / "run"); }), ".lock: cannot be written"));
  EXPECT_TRUE(fs::exists(folder / "run/checkpoints/.lock"));
}

TEST(RunFolder, HoldsARunIfThereIsOneOfTwoCheckpoints) {
  const fs::path folder = testing::scratch_folder();
  const RunFolder run(folder);
  for (const char* name : {"last", "previous"}) {
    EXPECT_FALSE(run.holds_run());
    write_file(run.checkpoint(name), "x");
    EXPECT_TRUE(run.holds_run()) << name;
    fs::remove(run.checkpoint(name));
  }
  write_file(run.checkpoint("best"), "x");
  EXPECT_FALSE(run.holds_run());
}

TEST(RunFolder, LinksWhereTheRunWritesAreErrors) {
  for (const char* name : {"recipe.json", "metrics.csv", "report.html", "summary.json", "checkpoints", "tensorboard",
                           "model", "last", "embeddings", "model/config.json", "checkpoints/last.safetensors"}) {
    const fs::path folder = testing::scratch_folder() / "run", target = folder.parent_path() / "elsewhere";
    fs::remove_all(folder);
    fs::create_directories((folder / name).parent_path());
    fs::create_symlink(target, folder / name);
    EXPECT_TRUE(contains(error_of([&] { const RunFolder run(folder); }), "a symbolic link")) << name;
    EXPECT_FALSE(fs::exists(target)) << name;
  }
}

TEST(RunFolder, PipesWhereTheRunWritesAreErrors) {
  for (const char* name : {"recipe.json", "summary.json", "model/config.json", "checkpoints/last.safetensors"}) {
    const fs::path folder = testing::scratch_folder() / "run";
    fs::remove_all(folder);
    fs::create_directories((folder / name).parent_path());
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_TRUE(contains(error_of([&] { const RunFolder run(folder); }), "got a pipe or a device")) << name;
  }
}

TEST(RunFolder, AnotherRunMayUseItAfterTheFirst) {
  const fs::path folder = testing::scratch_folder();
  {
    const RunFolder run(folder);
    EXPECT_TRUE(contains(error_of([&] { const RunFolder second(folder); }), "no other run"));
  }
  const RunFolder run(folder);
}

}  // namespace
}  // namespace vitrail::train
