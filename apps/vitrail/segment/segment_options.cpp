// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_options.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/models/bundled.h"
#include "vitrail/sam/prompt_text.h"

namespace vitrail::app {
namespace {

CLI::ValidationError refused(const char* option, const std::string& expected, const std::string& got) {
  return CLI::ValidationError(option, "expected " + expected + ", got " + got);
}

// What parse() gives, with its error as one of the command's usage.
template <class Parse>
auto parsed(const char* option, const std::string& text, Parse parse) {
  try {
    return parse(text, option);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

void require_npy(const char* option, const std::string& file) {
  const bool array = file.empty() || file.starts_with("/dev/") || std::filesystem::path(file).extension() == ".npy";
  if (!array) throw refused(option, "FILE.npy", file);
}

// A combination of options that is refused.
struct Conflict {
  bool found;
  const char* option;
  const char* reason;
};

void refuse(std::initializer_list<Conflict> conflicts) {
  for (const Conflict& conflict : conflicts) {
    if (conflict.found) throw CLI::ValidationError(conflict.option, conflict.reason);
  }
}

}  // namespace

kernels::Precision precision_of(const GlobalOptions& global) {
  return global.precision.empty() ? kernels::Precision::fp32 : kernels::precision_from_name(global.precision);
}

std::optional<models::SamPreprocessing> segmentation_preset(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return parsed("--preset", name, models::sam_preprocessing_from_name);
}

sam::PredictorOptions SegmentOptions::predictor_options(const GlobalOptions& global) const {
  return {.threads = global.threads, .precision = precision_of(global), .preprocessing = segmentation_preset(preset)};
}

void SegmentOptions::add_to(CLI::App& command) {
  command.add_option("INPUT", inputs, "Images, folders, or - for paths on standard input");
  command.add_option(
      "-m,--model", model,
      "Model: a checkpoint of Segment Anything (.pth, .safetensors), or a folder with one, or a semantic "
      "segmenter, or CLIPSeg (default: the bundled model of Segment Anything)");
  command.add_option("--preset", preset,
                     "Preprocessing: segment_anything, medsam or segment_anything_2 (default: the model's)");
  add_prompts_to(command);
  add_outputs_to(command);
  add_automatic_to(command);
}

void SegmentOptions::add_prompts_to(CLI::App& command) {
  constexpr const char* kGroup = "Prompt: all of these together are one, for each image";
  command
      .add_option("--point", points, "X,Y[,LABEL]: a point in the object (1, default) or outside it (0); repeatable")
      ->allow_extra_args(false)
      ->group(kGroup);
  command.add_option("--box", boxes, "X0,Y0,X1,Y1: a box around the object")->allow_extra_args(false)->group(kGroup);
  command
      .add_option("--mask", mask,
                  "A mask to refine: an image of the same size (0: outside), or FILE.npy of a mask's logits")
      ->group(kGroup);
  command.add_flag("--single", single, "One mask instead of three of different extent")->group(kGroup);
  command.add_option("--prompts", prompts,
                     "FILE.jsonl: a prompt per line, {\"image\": PATH, \"points\": [[x, y, label], …], \"box\": "
                     "[x0, y0, x1, y1], \"mask_logits\": FILE.npy, \"multimask\": true}");
  command.add_flag("--everything", everything, "Masks of everything in the image, from a grid of points");
}

void SegmentOptions::add_outputs_to(CLI::App& command) {
  command.add_option("-o,--output", output, "Folder for the files that --write names");
  add_force_to(command, force);
  add_field_options(command, [this](Fields& f) {
    f.choices({"write",
               "overlay: NAME.png; masks: NAME/0.png, …; csv: NAME/metadata.csv; coco: coco.json of all images; sa1b: "
               "NAME.json; polygons: NAME.geojson, with holes"},
              write, {"overlay", "masks", "csv", "coco", "sa1b", "polygons"});
    f.number({"opacity", "Opacity of the overlay's colours"}, opacity, {0, 1});
    f.choice({"format", "Output format: text, or json (one object per line)"}, format, {"text", "json"});
  });
  command.add_option("--logits", logits, "FILE.npy: the logits of the masks, float32 [prompts, masks, h, w]");
  command.add_option("--embedding", embedding,
                     "FILE.npy: the image embeddings, float32 [images, C, h, w]; the image paths are in FILE.txt");
  command.add_option("--cache", cache, "Folder that keeps image embeddings, in fp16, for later runs of this model");
  command.add_flag("--precompute", precompute, "Only compute the embeddings of the images into the cache");
}

void SegmentOptions::add_automatic_to(CLI::App& command) {
  add_field_options(command, sam::describe_automatic, automatic, {},
                    [](CLI::Option& option) { option.group("With --everything")->needs("--everything"); });
}

std::string SegmentOptions::model_path() const {
  if (!model.empty()) return model;
  if (models::find_bundled(models::kDefaultSegmenter)) return models::kDefaultSegmenter;
  throw CLI::RequiredError("--model");
}

void SegmentOptions::check() const {
  static_cast<void>(model_path());
  static_cast<void>(segmentation_preset(preset));
  check_prompts();
  check_outputs();
  if (inputs.empty() && prompts.empty()) throw CLI::RequiredError("INPUT");
  if (automatic.min_area > automatic.max_area) {
    throw CLI::ValidationError("--min-area", "expected at most --max-area");
  }
  static_cast<void>(prompt());
}

void SegmentOptions::check_prompts() const {
  const bool from_file = !prompts.empty();
  refuse({
      {from_file && !inputs.empty(), "--prompts", "names the images itself: expected no INPUT"},
      {from_file && (has_prompt() || single), "--prompts", "expected no other prompt beside it"},
      {everything && (has_prompt() || from_file || single), "--everything", "expected no prompt beside it"},
      {single && !has_prompt(), "--single", "expected --point, --box or --mask"},
      {precompute && cache.empty(), "--precompute", "expected --cache FOLDER"},
      {precompute && makes_masks(), "--precompute", "expected no prompt beside it"},
  });
  if (makes_masks() || precompute || !embedding.empty()) return;
  throw CLI::RequiredError("a prompt: --point, --box, --mask, --prompts FILE.jsonl or --everything");
}

void SegmentOptions::check_outputs() const {
  const bool masks = makes_masks(), to_folder = !output.empty();
  refuse({
      {!logits.empty() && (everything || !masks), "--logits", "expected a prompt"},
      {to_folder && !masks, "-o", "expected a prompt or --everything"},
      {format == "json" && !masks, "--format json", "expected a prompt or --everything"},
      {!to_folder && write != std::vector<std::string>{"overlay"}, "--write", "expected -o FOLDER"},
  });
  require_npy("--logits", logits);
  require_npy("--embedding", embedding);
  std::vector<std::string> files = inputs;
  files.insert(files.end(), {model, mask, prompts});
  const std::string list = embedding.empty() ? "" : std::filesystem::path(embedding).replace_extension(".txt").string();
  app::check_outputs({{"--logits", logits, Kind::array},
                      {"--embedding", embedding, Kind::array},
                      {"--embedding (paths)", list, Kind::paths, {embedding}}},
                     files, force);
  if (to_folder) check_output_folder(output, inputs);
}

sam::Prompt SegmentOptions::prompt() const {
  sam::Prompt prompt{.multimask = !single};
  for (const std::string& text : points) prompt.points.push_back(parsed("--point", text, sam::parse_point));
  if (boxes.size() > 1) throw refused("--box", "one box; --prompts FILE.jsonl takes several prompts", "two");
  if (!boxes.empty()) prompt.box = parsed("--box", boxes.front(), sam::parse_box);
  return prompt;
}

SegmentFiles SegmentOptions::files() const {
  if (output.empty()) return {};
  const auto has = [this](const char* kind) { return std::ranges::find(write, kind) != write.end(); };
  return {has("overlay"), has("masks"), has("csv"), has("coco"), has("sa1b"), has("polygons")};
}

}  // namespace vitrail::app
