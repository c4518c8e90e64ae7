// SPDX-License-Identifier: Apache-2.0
// Standard streams that are closed or full, images and lists on standard input, and outputs that are not plain files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "tests/apps/shell.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

class StreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch_folder();
    images_ = image_folder(3);
    ::setenv("D", folder_.c_str(), 1);
    ::setenv("I", images_.c_str(), 1);
  }
  fs::path folder_, images_;
};

TEST_F(StreamsTest, MessagesNeverGoToAnOutputFile) {
  std::ofstream(images_ / "broken.png") << "no image";
  const int open = shell("$V embed -m $M $I -o $D/open.npy 2>/dev/null");
  for (const std::string closed : {"2>&-", "1>&- 2>&-", "0>&- 1>&- 2>&-"}) {
    EXPECT_EQ(shell("$V embed -m $M $I -o $D/closed.npy " + closed), open) << closed;
    EXPECT_EQ(content_of(folder_ / "closed.npy"), content_of(folder_ / "open.npy")) << closed;
  }
}

TEST_F(StreamsTest, AFullOrClosedStandardOutputIsOneError) {
  for (const std::string command :
       {"$V models", "$V --help", "$V classify --help", "$V inspect -m $M --tree", "$V --version",
        "$V classify -m $M $I --format csv", "$V classify -m $M $I --format json", "$V bench $M --seconds 0.01"}) {
    for (const std::string output : {">/dev/full", ">&-"}) {
      EXPECT_EQ(shell(command + " " + output + " 2>$D/err"), 1) << command << output;
      const std::vector<std::string> lines = lines_of(content_of(folder_ / "err"));
      EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                              [](auto& line) { return contains(line, "standard output: write failed"); }),
                1)
          << command << output << content_of(folder_ / "err");
    }
  }
}

TEST_F(StreamsTest, AFullStandardErrorChangesNothing) {
  std::ofstream(folder_ / "broken.png") << "no image";
  EXPECT_EQ(shell("$V classify -m $M $D/broken.png $I/a.png >$D/out 2>/dev/full"), 1);
  EXPECT_TRUE(contains(content_of(folder_ / "out"), "a.png"));
  EXPECT_EQ(shell("$V classify -m $M $I/a.png >$D/out 2>/dev/full"), 0);
}

TEST_F(StreamsTest, AnImageOnStandardInputOrInAPipeIsClassified) {
  const auto predictions_of = [](const std::string& json) { return json_lines(json).at(0)["predictions"]; };
  const auto expected =
      predictions_of(run_program({"classify", "-m", small_model(), images_ / "b.png", "--format", "json"}).out);
  for (const std::string command :
       {"cat $I/b.png | $V classify -m $M - --format json", "$V classify -m $M - --format json <$I/b.png",
        "mkfifo $D/pipe; (cat $I/b.png >$D/pipe &); $V classify -m $M $D/pipe --format json"}) {
    EXPECT_EQ(shell(command + " >$D/out"), 0) << command;
    EXPECT_EQ(predictions_of(content_of(folder_ / "out")), expected) << command;
  }
}

// Bytes that are no list of paths are one error that names them.
TEST_F(StreamsTest, OtherFilesOnStandardInputAreNamed) {
  const auto error_for = [&](const std::string& input) {
    const ProgramResult ended = run_program({"classify", "-m", small_model(), "-"}, input);
    EXPECT_EQ(ended.status, 1) << ended.err;
    EXPECT_EQ(lines_of(ended.err).size(), 1u) << ended.err;
    return ended.err;
  };
  const std::string rest(100, 'x');
  for (const auto& [input, kind] : {std::pair{std::string("\0\0\0\x18"
                                                          "ftypheic\0\0\0\0\n\0mif1heic",
                                                          26) +
                                                  rest,
                                              "HEIC"},
                                    {std::string("\0\0\x01\0\x01\0\n\0", 8) + rest, "ICO"},
                                    {"<!DOCTYPE html>\n<html>\n" + rest, "an HTML page"},
                                    {"<svg xmlns=\"x\">\n</svg>\n", "SVG"},
                                    {"%PDF-1.4\n" + rest, "PDF"},
                                    {"version https://git-lfs.github.com/spec/v1\noid\n", "a Git LFS pointer"}})
    EXPECT_TRUE(contains(error_for(input), std::string("got ") + kind)) << kind << "\n" << error_for(input);
  EXPECT_TRUE(contains(error_for(std::string((1 << 20) + 10, '\n')), "got more than 1048576 empty lines"));
}

TEST_F(StreamsTest, ANetpbmImageOnStandardInputIsNoList) {
  std::string pixels;
  for (int i = 0; i < 40 * 30 * 3; ++i) pixels += static_cast<char>(i % 251);
  for (const std::string header : {"P6\n40 30\n255\n", "P6\n# made by hand\n40 30\n255\n"}) {
    const ProgramResult ended =
        run_program({"classify", "-m", small_model(), "-", "--format", "json"}, header + pixels);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(json_lines(ended.out).size(), 1u);
  }
}

TEST_F(StreamsTest, ListsEndInNewlinesOrInNuls) {
  const std::string a = images_ / "a.png", b = images_ / "b.png";
  fs::copy_file(a, folder_ / "two\nlines.png");
  const auto paths = [&](const std::string& input) {
    std::vector<std::string> result;
    const ProgramResult ended = run_program({"classify", "-m", small_model(), "-", "--format", "json"}, input);
    EXPECT_EQ(ended.status, 0) << ended.err;
    for (const auto& object : json_lines(ended.out)) result.push_back(object["path"]);
    return result;
  };
  const std::vector<std::string> both{a, b};
  EXPECT_EQ(paths(a + "\n" + b), both);
  EXPECT_EQ(paths(a + "\r\n\r\n" + b + "\r\n"), both);
  EXPECT_EQ(paths(a + '\0' + b), both);
  EXPECT_EQ(paths(a + '\0' + b + '\0'), both);
  const std::string broken_line = folder_ / "two\nlines.png";
  EXPECT_EQ(paths(broken_line + '\0' + b + '\0').size(), 1u + 1u);
  EXPECT_EQ(run_program({"classify", "-m", small_model(), "-"}, a + "\n" + b + '\0').status, 1);
}

TEST_F(StreamsTest, ResultsAppearBeforeTheListEnds) {
  ASSERT_EQ(::mkfifo((folder_ / "list").c_str(), 0600), 0);
  ASSERT_EQ(shell("$V embed -m $M $I -o $D/all.npy && $V index $D/all.npy -o $D/all.index"), 0);
  // The list stays open until the first result is there; otherwise both wait for each other.
  for (const std::string command : {"classify -m $M - --format csv", "search $D/all.index - --top 1 --format json"}) {
    EXPECT_EQ(shell(": >$D/out; timeout 60 $V " + command +
                    " <$D/list >$D/out & pid=$!; exec 4>$D/list; "
                    "echo $I/a.png >&4; n=0; while ! grep -q a.png $D/out && [ $n -lt 200 ]; do sleep 0.1; n=$((n+1)); "
                    "done; [ $n -lt 200 ] || exit 9; echo $I/b.png >&4; exec 4>&-; wait $pid"),
              0)
        << command;
    EXPECT_TRUE(contains(content_of(folder_ / "out"), "b.png")) << command;
  }
}

// A path may be shorter than the bytes that tell an image from a list.
TEST_F(StreamsTest, AShortPathDoesNotWaitForTheNext) {
  ASSERT_EQ(::mkfifo((folder_ / "list").c_str(), 0600), 0);
  for (const std::string end : {"\\n", "\\0"}) {
    EXPECT_EQ(shell("cd $I; : >$D/out; $V classify -m $M - --format csv <$D/list >>$D/out & exec 4>$D/list; "
                    "printf 'a.png" +
                    end + "' >&4; while kill -0 $! && ! grep -q a.png $D/out; do sleep 0.1; done; exec 4>&-; wait $!"),
              0);
  }
}

// Two threads ask for the next path and the one after it, in either order.  Missing files take no time, so that each of
// many paths is another try.
TEST_F(StreamsTest, NoPathWaitsForTheNext) {
  for (const char* name : {"list", "results"}) ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  EXPECT_EQ(shell("timeout 60 $V classify -m $M - --threads 2 --format json <$D/list >$D/results 2>$D/err & "
                  "exec 4>$D/list 5<$D/results; n=0; while [ $n -lt 2000 ]; do echo missing$n.png >&4; "
                  "read -r result <&5 || exit 9; n=$((n+1)); done; exec 4>&-; wait $!"),
            1);
}

TEST_F(StreamsTest, AFailedReadOfStandardInputIsAnError) {
  EXPECT_EQ(shell("$V classify -m $M - <$D >$D/../out 2>$D/err"), 1);
  EXPECT_TRUE(contains(content_of(folder_ / "err"), "standard input: read failed")) << content_of(folder_ / "err");
  EXPECT_EQ(shell("$V classify -m $M - <&- 2>$D/err"), 1);
}

TEST_F(StreamsTest, ControlCharactersAreEscapedInMessagesAndText) {
  for (const std::string name : {"\x1b[31mred", "bell\a", "back\bspace", "c1\xc2\x9b", "del\x7f", "latin1\xe9"}) {
    std::ofstream(folder_ / (name + ".png")) << "no image";
  }
  fs::copy_file(images_ / "a.png", folder_ / "good\x1b[2J.png");
  const ProgramResult result = run_program({"classify", "-m", small_model(), folder_});
  EXPECT_EQ(result.status, 1);
  for (const std::string& text : {result.out, result.err}) {
    for (const char c : text) {
      EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) << static_cast<int>(c);
    }
    EXPECT_FALSE(contains(text, "\xc2\x9b"));
    EXPECT_FALSE(contains(text, "\xe9"));
  }
  EXPECT_TRUE(contains(result.err, "\\x1b[31mred.png")) << result.err;
  EXPECT_TRUE(contains(result.out, "good\\x1b[2J.png")) << result.out;
}

// A name cannot end a line: what follows would look like another result or another message.
TEST_F(StreamsTest, ANameWithLineEndsStaysOnItsLine) {
  const std::string name = "a\nvitrail: error: \tb\r";
  for (const std::string& folder :
       std::vector<std::string>{"images", "labelled/" + name, "labelled/other", "train/" + name, "train/other"}) {
    fs::create_directories(folder_ / folder);
    fs::copy_file(images_ / "a.png", folder_ / folder / (name + ".png"));
    if (!folder.starts_with("train")) std::ofstream(folder_ / folder / (name + "2.png")) << "no image";
  }
  const std::string shown = "a\\x0avitrail: error: \\x09b\\x0d";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"classify", "-m", small_model(), folder_ / "images"},
           {"classify", "-m", small_model(), folder_ / ("absent" + name)},
           {"classify", "-m", folder_ / ("absent" + name), folder_ / "images"},
           {"eval", "-m", small_model(), folder_ / "labelled"},
           {"duplicates", "-m", small_model(), folder_ / "images"},
           {"knn", "-m", small_model(), folder_ / "train", folder_ / "train"},
           {"train", folder_ / "train", "-m", small_model(), "-o", folder_ / ("run" + name), "--epochs", "1"}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_TRUE(contains(result.err + result.out, shown)) << arguments[0] << result.err << result.out;
    for (const std::string& text : {result.out, result.err}) {
      if (text.starts_with("{")) continue;  // JSON escapes names itself
      for (const char* raw : {"\t", "\r", "\nvitrail: error: \\x09"})
        EXPECT_FALSE(contains(text, raw)) << arguments[0] << text;
    }
  }
  const ProgramResult json = run_program({"classify", "-m", small_model(), folder_ / "images", "--format", "json"});
  EXPECT_EQ(json_lines(json.out).at(0)["path"], (folder_ / "images" / (name + ".png")).string());
}

TEST_F(StreamsTest, EmbedFailsBeforeTheFirstImage) {
  const ProgramResult result = run_program({"embed", "-m", small_model(), images_, "-o", folder_ / "absent" / "x.npy"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(contains(result.err, "x.npy: cannot be written: No such file or directory")) << result.err;
  EXPECT_EQ(run_program({"embed", "-m", small_model(), images_, "-o", folder_ / "x.txt"}).status, 2);
}

// photos.txt beside photos.npy gets the paths.
TEST_F(StreamsTest, EmbedDoesNotReplaceTheListThatItReads) {
  std::ofstream(folder_ / "photos.txt") << "the list\n";
  EXPECT_EQ(shell("$V embed -m $M - -o $D/photos.npy <$D/photos.txt 2>$D/err"), 2);
  EXPECT_TRUE(contains(content_of(folder_ / "err"), "expected another file than the input"));
  EXPECT_EQ(content_of(folder_ / "photos.txt"), "the list\n");
}

TEST_F(StreamsTest, LabelsAreReadFromAPipe) {
  ::setenv("C", fixture("models/hf_clip").c_str(), 1);
  EXPECT_EQ(shell("printf 'cat\\ndog\\n' | $V zeroshot -m $C $I/a.png --labels /dev/stdin --format csv >$D/out"), 0);
  EXPECT_TRUE(contains(content_of(folder_ / "out"), ",cat,"));
  EXPECT_TRUE(contains(content_of(folder_ / "out"), ",dog,"));
}

TEST_F(StreamsTest, EmbedWritesARowForEveryImageOfAnyList) {
  EXPECT_EQ(shell("$V embed -m $M - -o $D/none.npy </dev/null 2>$D/err"), 0);
  EXPECT_TRUE(contains(content_of(folder_ / "err"), "no images"));
  const NpyArray none = read_npy(folder_ / "none.npy");
  ASSERT_EQ(none.shape.size(), 2u);
  EXPECT_EQ(none.shape[0], 0);
  std::ofstream(folder_ / "broken.png") << "no image";
  EXPECT_EQ(shell("$V embed -m $M $D/broken.png $D/broken.png $I/a.png -o $D/nan.npy 2>/dev/null"), 1);
  const NpyArray failed = read_npy(folder_ / "nan.npy");
  EXPECT_EQ(failed.shape, (std::vector<int64_t>{3, none.shape[1]}));
  for (int64_t i = 0; i < 3 * none.shape[1]; ++i)
    EXPECT_EQ(std::isnan(failed.f32[static_cast<size_t>(i)]), i < 2 * none.shape[1]) << i;
  EXPECT_EQ(lines_of(content_of(folder_ / "nan.txt")).size(), 3u);
}

TEST_F(StreamsTest, AFileOfResultsStaysIfNoImageCanBeRead) {
  for (const auto& [command, file] : std::vector<std::pair<std::string, std::string>>{
           {"embed -o", "f.npy"}, {"embed -o", "f.npz"}, {"embed -o", "f.csv"}, {"classify --logits", "l.npy"}}) {
    std::ofstream(folder_ / file) << "of another run";
    EXPECT_EQ(shell("$V " + command + " $D/" + file + " --force -m $M $D/mistyped >/dev/null 2>$D/err"), 1) << file;
    EXPECT_TRUE(contains(content_of(folder_ / "err"), "expected an image that can be read, got none")) << file;
    EXPECT_EQ(content_of(folder_ / file), "of another run") << file;
  }
}

TEST_F(StreamsTest, WithoutAnyImageThatCanBeReadANewFileHasRowsOfNan) {
  std::ofstream(folder_ / "broken.png") << "no image";
  for (const std::string command : {"embed -o", "classify --logits"}) {
    EXPECT_EQ(shell("$V " + command + " $D/new.npy -m $M $D/broken.png $D/broken.png >/dev/null 2>&1"), 1) << command;
    const NpyArray rows = read_npy(folder_ / "new.npy");
    EXPECT_EQ(rows.shape[0], 2) << command;
    EXPECT_TRUE(std::ranges::all_of(rows.f32, [](float value) { return std::isnan(value); })) << command;
    fs::remove(folder_ / "new.npy");
  }
}

// What limits the output is no fault of the images.
TEST_F(StreamsTest, AFailedWriteOfResultsIsOneError) {
  for (const std::string command : {"embed -o", "classify --logits"}) {
    EXPECT_EQ(shell("ulimit -f 1; for i in $(seq 100); do echo $I/a.png; done | $V " + command +
                    " $D/long.npy -m $M - >/dev/null 2>$D/err"),
              1)
        << command;
    EXPECT_EQ(lines_of(content_of(folder_ / "err")).size(), 1u) << content_of(folder_ / "err");
    EXPECT_TRUE(contains(content_of(folder_ / "err"), "write failed: File too large")) << content_of(folder_ / "err");
  }
}

TEST_F(StreamsTest, AFullStandardOutputIsOneErrorAndTheEnd) {
  for (const std::string format : {"text", "json", "csv"}) {
    EXPECT_EQ(shell("for i in $(seq 100); do echo $I/a.png; done | $V classify -m $M - --format " + format +
                    " >/dev/full 2>$D/err"),
              1);
    EXPECT_EQ(content_of(folder_ / "err"), "vitrail: error: standard output: write failed: No space left on device\n")
        << format;
  }
}

TEST_F(StreamsTest, FeaturesGoToStandardOutput) {
  ASSERT_EQ(shell("$V embed -m $M $I -o $D/file.npy"), 0);
  for (const std::string output : {"-", "/dev/stdout"}) {
    EXPECT_EQ(shell("$V embed -m $M $I -o " + output + " | cat >$D/piped.npy"), 0);
    EXPECT_EQ(content_of(folder_ / "piped.npy"), content_of(folder_ / "file.npy"));
    EXPECT_EQ(shell("$V embed -m $M $I -o " + output + " >$D/redirected.npy"), 0);
    EXPECT_EQ(content_of(folder_ / "redirected.npy"), content_of(folder_ / "file.npy"));
  }
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(StreamsTest, PathsWithLineBreaksKeepTheLinesOfTheList) {
  fs::copy_file(images_ / "a.png", folder_ / "two\nlines.png");
  fs::copy_file(images_ / "a.png", folder_ / "back\\slash.png");
  ASSERT_EQ(shell("$V embed -m $M $D -o $D/x.npy"), 0);
  const std::vector<std::string> lines = lines_of(content_of(folder_ / "x.txt"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], (folder_ / "back\\slash.png").string());
  EXPECT_EQ(lines[1], "\\" + folder_.string() + "/two\\nlines.png");
}

TEST_F(StreamsTest, AnInterruptedCommandLeavesNoFile) {
  fs::create_directories(folder_ / "out");
  ASSERT_EQ(::mkfifo((folder_ / "list").c_str(), 0600), 0);
  const std::map<std::string, int> signals{{"HUP", SIGHUP}, {"INT", SIGINT}, {"KILL", SIGKILL}, {"TERM", SIGTERM}};
  for (const auto& [name, signal] : signals) {
    for (const std::string command : {"embed -m $M - -o $D/out/x.npy", "classify -m $M - --logits $D/out/x.npy"}) {
      // The list stays open, so that the command waits for it until the signal.  A background job of a shell ignores
      // SIGINT, hence env.
      const int status = shell("env --default-signal $V " + command +
                               " <$D/list >/dev/null 2>&1 & pid=$!; exec 4>$D/list; echo $I/a.png >&4; sleep 0.3; "
                               "kill -" +
                               name + " $pid; wait $pid");
      EXPECT_EQ(status, 128 + signal) << command;
      EXPECT_TRUE(fs::is_empty(folder_ / "out")) << command << " after SIG" << name;
    }
  }
}

TEST_F(StreamsTest, TheFileSizeLimitIsAnError) {
  EXPECT_EQ(shell("ulimit -f 1; for i in 1 2 3 4; do cp $I/a.png $I/x$i.png; done; "
                  "$V attention -m $M $I/a.png --raw $D/x.npy 2>$D/err"),
            1);
  EXPECT_TRUE(contains(content_of(folder_ / "err"), "File too large")) << content_of(folder_ / "err");
  EXPECT_FALSE(fs::exists(folder_ / "x.npy"));
}

TEST(Usage, MisspelledCommandsAndOptionsGetASuggestion) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"unknown command 'clasify'; did you mean classify?", {"clasify", "x.png"}},
      {"unknown command 'atention'; did you mean attention?", {"--threads=2", "atention"}},
      {"unknown option --tpo; did you mean --top?", {"classify", "x.png", "--tpo", "3"}},
      {"unknown option --normalise; did you mean --normalize?", {"embed", "x.png", "-o", "y.npy", "--normalise"}},
      {"--image-size: expected N or HEIGHT,WIDTH in pixels, got '224x224'",
       {"classify", "x.png", "--image-size", "224x224"}},
      {"--threads", {"classify", "x.png", "--threads", "5000"}},
      {"--threads", {"classify", "x.png", "--threads", "0"}},
      {"expected FILE.png, got 'x.jpg'", {"attention", "-m", small_model(), "x.png", "-o", "x.jpg"}}};
  for (const auto& [message, arguments] : expected) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
    for (const std::string& line : lines_of(result.err)) EXPECT_LT(line.size(), 160u) << line;
  }
}

TEST(DecodeMemory, LimitsNoResult) {
  const std::string images = image_folder(6).string();
  const ProgramResult all = run_program({"classify", "-m", small_model(), images, "--threads", "4"});
  ASSERT_EQ(all.status, 0) << all.err;
  const ProgramResult few =
      run_program({"classify", "-m", small_model(), images, "--threads", "4", "--decode-memory", "1"});
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_EQ(few.out, all.out);
  EXPECT_EQ(run_program({"classify", "-m", small_model(), images, "--decode-memory", "0"}).status, 2);
}

}  // namespace
}  // namespace vitrail::testing
