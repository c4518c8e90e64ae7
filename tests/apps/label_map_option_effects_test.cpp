// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail segment` and `vitrail eval` for semantic segmenters.
#include <set>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/segment_runs.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/image/label_image.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string segmenter_folder() { return fixture("semantic/linear/config.json").parent_path(); }

std::vector<json> segments_of(const Arguments& more) {
  return json_lines(run(Arguments{"segment", "-m", segmenter_folder(), noise_folder()} + more).out);
}

fs::path rendered_labels(const Arguments& more) {
  const fs::path folder = scratch_folder();
  segments_of(Arguments{"--render", folder} + more);
  return folder / "a.png";
}

void check_label_task() {
  EXPECT_EQ(segments_of({"--task", "semantic"}), segments_of({}));
  const std::string message =
      refusal(Arguments{"segment", "-m", segmenter_folder(), noise_folder(), "--task", "instance"});
  EXPECT_TRUE(contains(message, "--task: expected semantic, which the model can do, got instance")) << message;
}

void check_label_arrays() {
  const fs::path folder = scratch_folder();
  const json line = segments_of({"--arrays", folder}).at(0);
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(json(array.shape), line["shape"]);
  std::set<int> classes, listed;
  for (const float value : array.f32) classes.insert(static_cast<int>(value));
  for (const json& segment : line["segments"]) listed.insert(segment["index"].get<int>());
  EXPECT_EQ(classes, listed);
}

void check_label_render() {
  const image::Image photo = image::read_image(noise_folder() / "a.png"), map = image::read_image(rendered_labels({}));
  EXPECT_EQ(map.width, photo.width);
  EXPECT_EQ(map.height, photo.height);
  EXPECT_EQ(image::read_image(rendered_labels({"--opacity", "0"})).pixels, photo.pixels);
  EXPECT_NE(map.pixels, photo.pixels);
}

void check_label_colors() {
  EXPECT_EQ(content_of(rendered_labels({"--colors", "overlay"})), content_of(rendered_labels({})));
  const image::LabelImage labels = image::read_labels(rendered_labels({"--colors", "labels"}));
  const image::Image ids = image::read_image(rendered_labels({"--colors", "panoptic"}));
  for (size_t i = 0; i < labels.labels.size(); ++i) ASSERT_EQ(ids.pixels[3 * i], labels.labels[i] + 1);
}

void check_label_legend() {
  EXPECT_GT(image::read_image(rendered_labels({"--legend"})).height, image::read_image(rendered_labels({})).height);
}

void check_label_rle() {
  EXPECT_FALSE(segments_of({}).at(0)["segments"][0].contains("rle"));
  EXPECT_TRUE(segments_of({"--rle"}).at(0)["segments"][0].contains("rle"));
}

// The numbers of segments of both images, by a model that finds objects.
size_t objects_of(const Arguments& more) {
  const std::string model = fixture("eomt/dinov3_panoptic/config.json").parent_path();
  size_t count = 0;
  for (const json& line : json_lines(run(Arguments{"segment", "-m", model, noise_folder()} + more).out)) {
    for (const json& segment : line["segments"]) EXPECT_TRUE(segment.contains("score"));
    count += line["segments"].size();
  }
  return count;
}

void check_label_score_threshold() {
  EXPECT_EQ(objects_of({"--score-threshold", "0.8"}), objects_of({}));
  EXPECT_EQ(objects_of({"--score-threshold", "1"}), 0U);
  EXPECT_GT(objects_of({"--task", "instance", "--score-threshold", "0"}), objects_of({"--task", "instance"}));
}

void check_label_overlap_threshold() {
  const Arguments all{"--score-threshold", "0"};
  EXPECT_EQ(objects_of(all + Arguments{"--overlap-threshold", "0.8"}), objects_of(all));
  EXPECT_GT(objects_of(all + Arguments{"--overlap-threshold", "0"}),
            objects_of(all + Arguments{"--overlap-threshold", "1"}));
}

void check_label_batch() { EXPECT_EQ(segments_of({"--batch", "1"}), segments_of({})); }

// A set whose labels are those that the model finds.
fs::path found_set(const std::function<void(image::Image&)>& change) {
  const fs::path set = scratch_folder();
  fs::copy(noise_folder(), set / "images");
  run({"segment", "-m", segmenter_folder(), set / "images", "--colors", "labels", "--render", set / "labels"});
  for (const char* name : {"a.png", "b.png"}) {
    image::Image labels = image::read_image(set / "labels" / name, {.mode = image::ColorMode::grey});
    change(labels);
    image::write_png(set / "labels" / name, labels);
  }
  return set;
}

json evaluated(const fs::path& set, const Arguments& more = {}) {
  return json_of(Arguments{"eval", "-m", segmenter_folder(), set, "--format", "json"} + more);
}

void check_reduce_labels() {
  const fs::path set = found_set([](image::Image& labels) {
    for (uint8_t& label : labels.pixels) ++label;
    labels.pixels.front() = 0;
  });
  const json report = evaluated(set, {"--reduce-labels"});
  EXPECT_EQ(report["miou"], 1);
  int64_t pixels = 0;
  for (const char* name : {"a.png", "b.png"}) {
    const image::Image image = image::read_image(set / "images" / name);
    pixels += image.width * image.height - 1;
  }
  EXPECT_EQ(report["pixels"], pixels) << "0 is ignored";
}

void check_ignored_label() {
  const fs::path set = found_set([](image::Image& labels) { labels.pixels.front() = 99; });
  EXPECT_EQ(evaluated(set, {"--ignored-label", "99"})["pixel_accuracy"], 1);
  const ProgramResult result = run_program({"eval", "-m", segmenter_folder(), set});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "labels from 0 to 6, or 255 for ignored pixels, got 99")) << result.err;
}

TEST(EvalOfLabelMaps, CountsWhatDiffers) {
  const fs::path set = found_set([](image::Image& labels) {
    for (size_t i = 0; i < labels.pixels.size() / 2; ++i) labels.pixels[i] = labels.pixels[i] == 5 ? 6 : 5;
  });
  const json report = evaluated(set);
  EXPECT_EQ(report["images"], 2);
  EXPECT_NEAR(report["pixel_accuracy"].get<double>(), 0.5, 0.01);
  EXPECT_EQ(report["classes"].size(), 7u);
  EXPECT_EQ(report["classes"][5]["label"], "ceiling");
  const std::string table = run({"eval", "-m", segmenter_folder(), set}).out;
  EXPECT_TRUE(contains(table, "miou ")) << table;
  EXPECT_TRUE(contains(table, "ceiling")) << table;
}

TEST(EvalOfLabelMaps, OptionsOfOtherModelsAreRefused) {
  const ProgramResult labels = run_program({"eval", "-m", segmenter_folder(), "set", "--zeroshot"});
  EXPECT_EQ(labels.status, 2);
  EXPECT_TRUE(contains(labels.err, "the model gives each pixel a class")) << labels.err;
  const ProgramResult classifier = run_program({"eval", "-m", small_model(), "set", "--reduce-labels"});
  EXPECT_EQ(classifier.status, 2);
  EXPECT_TRUE(contains(classifier.err, "--reduce-labels: belongs to a model that gives each pixel a class"));
}

TEST(SegmentOfLabelMaps, OptionsOfOtherModelsAreRefused) {
  const auto refused = [](const Arguments& arguments, const std::string& message) {
    const ProgramResult result = run_program(Arguments{"segment"} + arguments);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  };
  const std::string image = noise_folder() / "a.png", sam = exact_windows().model;
  refused({"-m", segmenter_folder(), image, "--point", "1,2"},
          "--point: belongs to Segment Anything; the model is a semantic segmenter");
  refused({"-m", sam, image, "--legend"}, "--legend: belongs to another segmenter; the model is Segment Anything");
  refused({"-m", sam, image, "--legend", "--point", "1,2"}, "--legend: expected no --point beside it");
  refused({"-m", segmenter_folder()}, "INPUT is required");
}

TEST(SegmentOfLabelMaps, AModelOfAnotherTaskIsRefused) {
  const std::string message = refusal({"segment", "-m", small_model(), noise_folder() / "a.png"});
  EXPECT_TRUE(contains(message,
                       "--model: expected one of Segment Anything, or a semantic segmenter, or CLIPSeg, got a "
                       "Vision Transformer"))
      << message;
  const std::string other = refusal({"classify", "-m", segmenter_folder(), noise_folder()});
  EXPECT_TRUE(contains(other, "vitrail segment")) << other;
}

}  // namespace

OptionEffects label_map_option_effects() {
  return {{"segment", "--task", check_label_task},
          {"segment", "--arrays", check_label_arrays},
          {"segment", "--render", check_label_render},
          {"segment", "--colors", check_label_colors},
          {"segment", "--legend", check_label_legend},
          {"segment", "--rle", check_label_rle},
          {"segment", "--batch", check_label_batch},
          {"segment", "--score-threshold", check_label_score_threshold},
          {"segment", "--overlap-threshold", check_label_overlap_threshold},
          {"eval", "--reduce-labels", check_reduce_labels},
          {"eval", "--ignored-label", check_ignored_label}};
}

}  // namespace vitrail::testing
