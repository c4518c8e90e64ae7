// SPDX-License-Identifier: Apache-2.0
// What the program shows in a terminal: the status line with bar, rate and time left, and colours.
#include "tests/support/terminal.h"

#include <fstream>
#include <regex>

#include "tests/apps/cli_fixture.h"
#include "tests/train/training_fixture.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

bool finds(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

constexpr const char* kRedError = "vitrail: \033[1;31merror:\033[0m ";

class TerminalTest : public ::testing::Test {
 protected:
  std::vector<std::string> classify(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"classify", "-m", small_model(), "--batch", "2", images_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  const fs::path images_ = image_folder(7);
};

TEST_F(TerminalTest, InferenceShowsBarRateAndTimeLeft) {
  const TerminalResult result = run_in_terminal(classify());
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(finds(result.transcript, "images (━|╌)* 1/7  [0-9]+:[0-9]{2} left  [0-9.]+ images/s"))
      << result.transcript;
  EXPECT_TRUE(finds(result.transcript, "images ━━━━━━━━━━ 7/7  0:00 left  [0-9.]+ images/s"));
}

// The status line is removed before each result and at the end, so that the screen shows what a file would contain.
TEST_F(TerminalTest, ResultsNeverRunIntoTheStatusLine) {
  for (const std::vector<std::string>& format : {std::vector<std::string>{}, {"--format", "csv"}}) {
    const ProgramResult plain = run_program(classify(format));
    const TerminalResult result = run_in_terminal(classify(format), {.columns = 400});
    EXPECT_EQ(result.screen(400), lines_of(plain.out)) << result.transcript;
    EXPECT_TRUE(finds(result.transcript, "7/7")) << "no status line, so nothing was tested";
  }
}

TEST_F(TerminalTest, ErrorsOfImagesHaveLinesOfTheirOwn) {
  std::ofstream(images_ / "broken.png") << "no image";
  const ProgramResult plain = run_program(classify());
  const TerminalResult result = run_in_terminal(classify(), {.columns = 400});
  EXPECT_EQ(result.status, 1);
  std::vector<std::string> expected = lines_of(plain.out + plain.err), screen = result.screen(400);
  std::sort(expected.begin(), expected.end());  // errors come among the results
  std::sort(screen.begin(), screen.end());
  EXPECT_EQ(screen, expected) << result.transcript;
}

TEST_F(TerminalTest, TheStatusLineFitsANarrowTerminal) {
  const std::string file = (scratch_folder() / "out").string();
  const TerminalResult result = run_in_terminal(classify(), {.columns = 30, .output = file});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.transcript, "images ━"));
  EXPECT_EQ(result.screen(30), std::vector<std::string>{}) << "a wrapped line is not removed";
}

TEST_F(TerminalTest, StandardOutputInAFileHasTheResultsAlone) {
  const std::string file = (scratch_folder() / "out").string();
  const TerminalResult result = run_in_terminal(classify(), {.output = file});
  EXPECT_TRUE(contains(result.transcript, "7/7"));
  EXPECT_EQ(train::read_text(file), run_program(classify()).out);
}

TEST_F(TerminalTest, QuietAndPipesShowNoStatusLine) {
  EXPECT_FALSE(contains(run_in_terminal(classify({"--quiet"})).transcript, "\033"));
  const ProgramResult piped = run_program(classify());
  EXPECT_EQ(piped.err, "");
  EXPECT_FALSE(contains(piped.out, "\033"));
}

TEST_F(TerminalTest, ATerminalWithoutControlSequencesShowsNoStatusLine) {
  const TerminalResult result = run_in_terminal(classify(), {.environment = {{"TERM", "dumb"}}});
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(contains(result.transcript, "\033")) << result.transcript;
}

TEST_F(TerminalTest, MeasurementsAreATableForPeopleAndJsonForScripts) {
  const std::vector<std::string> bench{"bench", small_model(), "--batch", "1,2", "--seconds", "0.001"};
  const std::vector<std::string> screen = run_in_terminal(bench, {.columns = 400}).screen(400);
  ASSERT_EQ(screen.size(), 4u);
  EXPECT_TRUE(finds(screen[1], "task +batch +precision +median ms")) << screen[1];
  EXPECT_TRUE(finds(screen[3], "^ +forward +2 +fp32 +[0-9]+\\.[0-9]{3} ")) << screen[3];
  EXPECT_EQ(json_lines(run_program(bench).out).size(), 2u);
}

TEST_F(TerminalTest, ErrorsAreColoredOnATerminalUnlessNoColor) {
  const std::vector<std::string> failing{"classify", "-m", small_model(), "/nowhere.png"};
  EXPECT_TRUE(contains(run_in_terminal(failing).transcript, kRedError));
  EXPECT_TRUE(contains(run_in_terminal(failing, {.environment = {{"NO_COLOR", ""}}}).transcript, kRedError))
      << "no-color.org: an empty value is none";
  for (const auto& [variable, value] : {std::pair{"NO_COLOR", "1"}, {"TERM", "dumb"}}) {
    const TerminalResult result = run_in_terminal(failing, {.environment = {{variable, value}}});
    EXPECT_FALSE(contains(result.transcript, "\033[1")) << variable;
    EXPECT_TRUE(contains(result.transcript, "vitrail: error: ")) << variable;
  }
  EXPECT_TRUE(contains(run_program(failing).err, "vitrail: error: ")) << "not on a terminal";
}

// Without a second training.
std::vector<std::string> one_training(const fs::path& dataset, const fs::path& run, const std::string& epochs) {
  return {"train",    dataset,
          "-o",       run,
          "-m",       small_model(),
          "--epochs", epochs,
          "--set",    "model.head=drawn",
          "--set",    "data.retrain=false"};
}

TEST_F(TerminalTest, TrainingShowsBarRateAndTimeLeftAndALineForEachEpoch) {
  const fs::path dataset = train::make_images(), run = scratch_folder() / "run";
  const TerminalResult result = run_in_terminal(one_training(dataset, run, "2"), {.columns = 120});
  EXPECT_EQ(result.status, 0) << result.transcript;
  EXPECT_TRUE(
      finds(result.transcript,
            "epoch 1/2 (━|╌)* [0-9]+/[0-9]+  [0-9]+:[0-9]{2} left  loss [0-9.]+  top-1 [0-9.]+ %  [0-9]+ images/s"))
      << result.transcript;
  int epochs = 0;
  for (const std::string& line : result.screen(120)) {
    EXPECT_FALSE(contains(line, "━")) << line;
    epochs += finds(line, "^epoch +[12]  step +[0-9]+  loss");
  }
  EXPECT_EQ(epochs, 2) << result.transcript;
}

// The texts that the status line had, one after the other.
std::vector<std::string> drawn_lines(const std::string& transcript) {
  const std::string start = "\r\033[K";
  std::vector<std::string> lines;
  for (size_t at = transcript.find(start); at != std::string::npos; at = transcript.find(start, at + 1)) {
    const size_t text = at + start.size();
    std::string line = transcript.substr(text, transcript.find_first_of("\r\n", text) - text);
    if (contains(line, "━") || contains(line, "╌")) lines.push_back(std::move(line));
  }
  return lines;
}

size_t columns_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// A part of the status line is shown as a whole or left out: a time left of 0:25 must not become 0:2.
TEST_F(TerminalTest, NoNumberOfTheStatusLineIsCut) {
  const fs::path dataset = train::make_images();
  const std::string count = " (━|╌)+ [0-9]+/[0-9]+", left = "  [0-9]+:[0-9]{2} left";
  const std::regex training("epoch [12]/2" + count + "(" + left +
                            "(  loss [0-9]+\\.[0-9]{4}(  top-1 [0-9]+\\.[0-9] %(  [0-9]+ images/s(  data wait [0-9]+ "
                            "%)?)?)?)?)?");
  const std::regex evaluation("(validating|testing|computing features)" + count + "(" + left +
                              "(  [0-9]+ images/s)?)?");
  const std::regex baseline("cross-validating" + count + "(" + left + ")?");
  for (const int columns : {80, 64, 48, 40, 30}) {
    const fs::path run = scratch_folder() / ("run" + std::to_string(columns));
    const TerminalResult result = run_in_terminal(one_training(dataset, run, "2"), {.columns = columns});
    EXPECT_EQ(result.status, 0) << result.transcript;
    const std::vector<std::string> lines = drawn_lines(result.transcript);
    EXPECT_GE(lines.size(), 5u) << "two epochs, their validation and the test";
    for (const std::string& line : lines) {
      EXPECT_LT(columns_of(line), static_cast<size_t>(columns)) << line;
      EXPECT_TRUE(std::regex_match(line, training) || std::regex_match(line, evaluation) ||
                  std::regex_match(line, baseline))
          << line;
      EXPECT_TRUE(columns < 48 || finds(line, left)) << line;
      EXPECT_TRUE(columns < 80 || !std::regex_match(line, evaluation) || finds(line, "images/s")) << line;
    }
  }
}

// A filled cell for each whole cell of work that is done.  The last column of the terminal stays free.
TEST_F(TerminalTest, TheBarIsFilledByTheShareThatIsDone) {
  const fs::path dataset = train::make_images();
  for (const auto& [columns, cells] : {std::pair{120, 20}, {91, 20}, {90, 10}, {51, 10}, {50, 5}}) {
    const fs::path run = scratch_folder() / ("bar" + std::to_string(columns));
    const TerminalResult result = run_in_terminal(one_training(dataset, run, "1"), {.columns = columns});
    ASSERT_EQ(result.status, 0) << result.transcript;
    const std::vector<std::string> lines = drawn_lines(result.transcript);
    EXPECT_GE(lines.size(), 3u);
    const std::regex pattern("[a-z0-9/ -]* ((━|╌)+) ([0-9]+)/([0-9]+) .*");
    for (const std::string& line : lines) {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(line, parts, pattern)) << line;
      const int filled = cells * std::stoi(parts[3]) / std::stoi(parts[4]);
      std::string bar;
      for (int i = 0; i < cells; ++i) bar += i < filled ? "━" : "╌";
      EXPECT_EQ(parts[1].str(), bar) << line;
    }
  }
}

}  // namespace
}  // namespace vitrail::testing
