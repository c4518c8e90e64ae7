// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests of the options' effects: tables of checks, one per option, and what these run.  options_test.cpp holds the
// tables against the options that the program's help lists.
#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/apps/shell.h"

namespace vitrail::testing {

struct OptionEffect {
  std::string command;  // empty: an option of the program
  std::string names;    // as in the help: "-o,--output"
  std::function<void()> check;
};
inline void PrintTo(const OptionEffect& effect, std::ostream* out) { *out << effect.command << " " << effect.names; }
using OptionEffects = std::vector<OptionEffect>;
using Arguments = std::vector<std::string>;

// The tables, each in a file of its name.
OptionEffects model_option_effects();      // --model … --crop-mode, --tome, --exif and --batch of all commands
OptionEffects inference_option_effects();  // classify, embed, attention, eval, knn
OptionEffects explain_option_effects();    // explain
OptionEffects zeroshot_option_effects();   // zeroshot; texts of embed and eval
OptionEffects search_option_effects();     // index, search, duplicates
OptionEffects audit_option_effects();      // audit
OptionEffects anomaly_option_effects();    // anomaly, anomaly fit
OptionEffects serve_option_effects();      // serve
OptionEffects segment_option_effects();    // segment
OptionEffects depth_option_effects();      // depth
OptionEffects label_map_option_effects();  // segment and eval with semantic segmenters
OptionEffects clipseg_option_effects();    // segment with CLIPSeg
OptionEffects matte_option_effects();      // matte
OptionEffects detect_option_effects();     // detect
OptionEffects pose_option_effects();       // pose
OptionEffects owl_option_effects();        // detect with labels and examples
OptionEffects box_eval_option_effects();   // eval with object detectors
OptionEffects frame_option_effects();      // frames of a video on standard input
OptionEffects output_option_effects();     // --force of all commands
OptionEffects pretrain_option_effects();   // pretrain
OptionEffects tool_option_effects();       // the program, inspect, bench, convert, train

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Runs the program, which must succeed.
inline ProgramResult run(const Arguments& arguments, const std::map<std::string, std::string>& environment = {}) {
  const ProgramResult result = run_program(arguments, "", environment);
  EXPECT_EQ(result.status, 0) << ::testing::PrintToString(arguments) << result.err;
  return result;
}

inline nlohmann::json json_of(const Arguments& arguments) { return json_lines(run(arguments).out).at(0); }
inline std::string inspected(const Arguments& more) { return run(Arguments{"inspect"} + more).out; }

// The message of a run that must fail.
inline std::string refusal(const Arguments& arguments) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 1) << ::testing::PrintToString(arguments) << result.err;
  return result.err;
}

// What a learning page says of its image and model, without the names of files.
std::string facts_of_page(const std::filesystem::path& page);

// A model of images and texts.
inline std::string dual_model() { return fixture("models/open_clip").string(); }

// Arguments that serve the small model under the name "small".
inline Arguments serve_small(const Arguments& more = {}) { return Arguments{"-m", "small=" + small_model()} + more; }

// Writes an image of noise, which depends on `seed`.
void write_noise(const std::filesystem::path& file, int64_t width, int64_t height, uint64_t seed);

// FOLDER/CLASS/N.png: n images of noise in each of the classes 0 to 9.
std::filesystem::path noise_dataset(int per_class, uint64_t seed);

// ROOT/NAME/N.png: so many images of noise in each folder.
std::filesystem::path folders_of(const std::map<std::string, int>& counts, uint64_t seed = 0);

// Two images.
const std::filesystem::path& noise_folder();

// An index of the features of images.
std::string index_of(const std::filesystem::path& images, const std::string& model, const Arguments& more = {},
                     const std::map<std::string, std::string>& environment = {});

// What a command makes of a model: the bytes of the arrays or files that it writes, or else its text.  Equal for equal
// inputs, whatever the machine's speed.  Commands: all but train, index and models.
std::string observe(const std::string& command, const std::string& model, const Arguments& more = {},
                    const std::map<std::string, std::string>& environment = {});

}  // namespace vitrail::testing
