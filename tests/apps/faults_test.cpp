// SPDX-License-Identifier: Apache-2.0
// What goes wrong around a run: folders that may not be read, mount points, limits of the system, files that change.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/apps/shell.h"
#include "tests/train/training_fixture.h"
#include "vitrail/base/zip_writer_internal.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch_folder();
    images_ = image_folder(2);
    ::setenv("D", folder_.c_str(), 1);
    ::setenv("I", images_.c_str(), 1);
  }
  std::string out() const { return content_of(folder_ / "out"); }
  std::string err() const { return content_of(folder_ / "err"); }

  fs::path folder_, images_;
};

// Root may read every folder, unless it gives the right away.
std::string without_rights() {
  return ::geteuid() == 0 ? "setpriv --bounding-set=-dac_override,-dac_read_search " : "";
}

TEST_F(FaultsTest, AnUnreadableFolderCostsOnlyItself) {
  fs::create_directories(images_ / "locked");
  fs::copy_file(images_ / "a.png", images_ / "locked/x.png");
  fs::permissions(images_ / "locked", fs::perms::none);
  const std::string error =
      "vitrail: error: " + (images_ / "locked").string() + ": cannot be read: Permission denied\n";
  for (const std::string command : {"classify -m $M $I --format json", "embed -m $M $I -o $D/x.npy"}) {
    EXPECT_EQ(shell(without_rights() + "$V " + command + " >$D/out 2>$D/err"), 1);
    EXPECT_EQ(err(), error) << command;
    if (command.starts_with("embed")) {
      EXPECT_EQ(lines_of(content_of(folder_ / "x.txt")).size(), 3u);
      continue;
    }
    const auto objects = json_lines(out());
    ASSERT_EQ(objects.size(), 3u) << out();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(objects[i].contains("predictions"), i < 2) << objects[i];
  }
  for (const std::string command : {"eval -m $M $I", "knn -m $M $I $I", "train $I -o $D/run -m $M"}) {
    EXPECT_EQ(shell(without_rights() + "$V " + command + " >$D/out 2>$D/err"), 1) << "a class cannot be left out";
    EXPECT_EQ(err(), error) << command;
  }
  fs::permissions(images_ / "locked", fs::perms::owner_all);  // for the one who removes the folder
}

TEST_F(FaultsTest, AnUnreadableFolderBelowAClassCostsItsImages) {
  const fs::path locked = folder_ / "set/1/locked";
  fs::create_directories(locked);
  fs::create_directories(folder_ / "set/0");
  fs::copy_file(images_ / "a.png", folder_ / "set/0/a.png");
  fs::copy_file(images_ / "b.png", folder_ / "set/1/b.png");
  fs::permissions(locked, fs::perms::none);
  EXPECT_EQ(shell(without_rights() + "$V eval -m $M $D/set --format json >$D/out 2>$D/err"), 0) << err();
  EXPECT_EQ(json_lines(out()).front()["images"], 2);
  EXPECT_TRUE(contains(err(), "set: left out 1 folder that cannot be read: '1/locked'\n")) << err();
  fs::permissions(locked, fs::perms::owner_all);  // for the one who removes the folder
}

TEST_F(FaultsTest, AFileThatIsAMountPointIsOverwritten) {
  if (shell("touch $D/a $D/b; unshare -m mount --bind $D/a $D/b 2>/dev/null") != 0)
    GTEST_SKIP() << "files cannot be mounted here";
  std::ofstream(folder_ / "source.npy") << "\x93NUMPY" + std::string(100'000, 'x');
  std::ofstream(folder_ / "target.npy") << "below the mount";
  EXPECT_EQ(shell("$V embed -m $M $I -o $D/plain.npy"), 0);
  EXPECT_EQ(shell("unshare -m sh -c 'mount --bind $D/source.npy $D/target.npy && $V embed -m $M $I -o $D/target.npy' "
                  "2>$D/err"),
            0)
      << err();
  EXPECT_EQ(content_of(folder_ / "source.npy"), content_of(folder_ / "plain.npy"));
  EXPECT_EQ(content_of(folder_ / "target.npy"), "below the mount");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_FALSE(contains(entry.path().filename().string(), "tmp")) << entry.path();
}

TEST_F(FaultsTest, TooLittleMemoryIsAnError) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer needs more address space itself";
#endif
  EXPECT_EQ(shell("ulimit -v 1000000; $V inspect layer:mlp --set in_features=10000 --threads 1 >$D/out 2>$D/err"), 1);
  EXPECT_EQ(err(), "vitrail: error: out of memory\n");
  EXPECT_EQ(out(), "");
}

TEST_F(FaultsTest, TooFewOpenFilesAreAnErrorThatNamesTheFile) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer opens files itself";
#endif
  ::setenv("T", train::make_images(2, 2).c_str(), 1);
  for (const std::string command :
       {"classify -m $M $I", "embed -m $M $I -o $D/x.npy", "eval -m $M $I", "train $T -o $D/run -m $M --epochs 1"}) {
    EXPECT_EQ(shell("(ulimit -n 4; exec $V " + command + " --threads 1) >$D/out 2>$D/err"), 1) << command << err();
    EXPECT_TRUE(contains(err(), "vitrail: error: ") && contains(err(), ": Too many open files\n")) << command << err();
    EXPECT_EQ(out(), "") << command;
  }
  EXPECT_FALSE(fs::exists(folder_ / "x.npy"));
}

TEST_F(FaultsTest, ASmallLimitOfStacksIsNoLimitOfTheRun) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer uses more of the stack itself";
#endif
  ::setenv("T", train::make_images(2, 2).c_str(), 1);
  for (const std::string command : {"classify -m $M $I", "embed -m $M $I -o $D/x.npy",
                                    "attention -m $M $I/a.png -o $D/x.png", "train $T -o $D/run$N -m $M --epochs 1"}) {
    for (const std::string threads : {"1", "2"})
      EXPECT_EQ(shell("N=" + threads + "; (ulimit -s 64; exec $V " + command + " --threads " + threads +
                      ") >$D/out 2>$D/err"),
                0)
          << command << err();
  }
}

// Changes of a file of 50 kB: cut to nothing, cut within a tensor, overwritten by zeros.
const std::string kChanges[] = {": >$F", "truncate -s 9000 $F",
                                "dd if=/dev/zero of=$F bs=1000 seek=9 count=30 conv=notrunc 2>/dev/null"};

TEST_F(FaultsTest, AModelThatChangesEndsTheRunAfterTheResultsSoFar) {
  ASSERT_EQ(::mkfifo((folder_ / "list").c_str(), 0600), 0);
  fs::create_directories(folder_ / "model");
  for (const std::string& change : kChanges) {
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(small_model()) / file, folder_ / "model" / file, fs::copy_options::overwrite_existing);
    // The second path comes when the first result is there and the model has changed.
    EXPECT_EQ(shell("F=$D/model/model.safetensors; : >$D/out; $V classify -m $D/model - --format json <$D/list "
                    ">>$D/out 2>$D/err & exec 4>$D/list; echo $I/a.png >&4; while kill -0 $! && ! grep -q a.png "
                    "$D/out; do sleep 0.1; "
                    "done; " +
                    change + "; echo $I/b.png >&4; exec 4>&-; wait $!"),
              1)
        << change;
    EXPECT_EQ(err(), "vitrail: error: " + (folder_ / "model/model.safetensors").string() +
                         ": expected a file that stays the same while it is used, got one that has changed\n");
    const auto results = json_lines(out());
    ASSERT_EQ(results.size(), 1u) << change << out();
    EXPECT_EQ(results[0]["path"], (images_ / "a.png").string());
    EXPECT_TRUE(results[0].contains("predictions"));
  }
}

// A zip with `images` files in a class folder.  Each gives a long message, because it is no image.
void write_zip_of_broken_images(const fs::path& path, int images) {
  ZipWriter zip(path);
  for (int i = 0; i < images; ++i) {
    zip.begin("0/" + std::string(200, 'n') + std::to_string(i) + ".png");
    zip.write("no image", 8);
    zip.end();
  }
  zip.commit();
}

// Standard error is a pipe that holds fewer messages than there will be, so that the command waits in the middle until
// the archive has changed and the pipe is read.
TEST_F(FaultsTest, AnArchiveThatChangesEndsTheRun) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& change : kChanges) {
    write_zip_of_broken_images(folder_ / "images.zip", 1000);
    EXPECT_EQ(shell("F=$D/images.zip; $V eval -m $M $F --threads 1 >$D/out 2>$D/pipe & exec 4<$D/pipe; "
                    "read -r first <&4; " +
                    change + "; cat <&4 >$D/err; wait $!"),
              1)
        << change;
    const std::vector<std::string> lines = lines_of(err());
    EXPECT_EQ(out(), "");
    ASSERT_FALSE(lines.empty());
    EXPECT_LT(lines.size(), 1000u);
    EXPECT_TRUE(contains(lines.back(), (folder_ / "images.zip").string() + ": expected a file that stays the same"))
        << lines.back();
  }
}

// The dataset of a training in an archive of stored files.
fs::path archive_of(const fs::path& images) {
  const fs::path path = scratch_folder() / "images.zip";
  ZipWriter zip(path);
  for (const auto& entry : fs::recursive_directory_iterator(images)) {
    if (!entry.is_regular_file()) continue;
    const std::string content = content_of(entry.path());
    zip.begin(entry.path().lexically_relative(images).string());
    zip.write(content.data(), content.size());
    zip.end();
  }
  zip.commit();
  return path;
}

TEST_F(FaultsTest, AnArchiveThatChangesEndsTheTraining) {
  for (const std::string& change : {std::string("printf x >>$F"), kChanges[1]}) {
    const fs::path archive = archive_of(train::make_images()), run = scratch_folder() / "run";
    ::setenv("F", archive.c_str(), 1);
    ::setenv("R", run.c_str(), 1);
    train::write_file(folder_ / "recipe.json", train::tiny_recipe(archive));
    EXPECT_EQ(shell("$V train $D/recipe.json -o $R --threads 1 --set epochs=1000000 --set data.keep_decoded_mb=0 "
                    ">$D/out 2>$D/err & while kill -0 $! && ! test -s $R/metrics.csv; do sleep 0.1; done; " +
                    change + "; wait $!"),
              1)
        << change;
    EXPECT_TRUE(contains(err(), archive.string())) << err();
    EXPECT_EQ(out(), "");
  }
}

}  // namespace
}  // namespace vitrail::testing
