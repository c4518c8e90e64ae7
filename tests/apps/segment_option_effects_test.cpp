// SPDX-License-Identifier: Apache-2.0
// Options of segment, compared with the library's results.
#include <fstream>
#include <set>

#include "tests/apps/segment_runs.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/automatic.h"
#include "vitrail/sam/mask_overlay.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sam::AutomaticOptions;

const sam::Predictor& predictor() {
  static const sam::Predictor made(exact_windows().model);
  return made;
}

const image::Image& photo() { return exact_windows().image; }

json masks_of(const Arguments& more) {
  return json::parse(segment_text(Arguments{photo_file(), "--format", "json"} + more)).at("masks");
}

// The masks of a prompt in the library, as [predicted IoU, area].
json library_masks(const sam::Prompt& prompt, const image::Image& image = photo()) {
  const sam::ImageEmbedding embedding = predictor().embed(image);
  const sam::Masks masks = predictor().predict(embedding, prompt);
  json result = json::array();
  for (size_t m = 0; m < masks.iou.size(); ++m) {
    const Tensor logits =
        predictor().image_logits(masks.logits.select(0, static_cast<int64_t>(m)), embedding.width, embedding.height);
    result.push_back({masks.iou[m], sam::area(sam::threshold(logits))});
  }
  return result;
}

json measures_of(const json& masks) {
  json result = json::array();
  for (const json& mask : masks) result.push_back({mask["iou"].get<float>(), mask["area"]});
  return result;
}

void expect_prompt(const Arguments& options, const sam::Prompt& prompt) {
  EXPECT_EQ(measures_of(masks_of(options)), library_masks(prompt));
}

void check_model_of_segment() {
  expect_prompt({"--point", "30,20"}, {.points = {{30, 20, 1}}});
  // Without -m: the bundled model, here that of another installation.
  const fs::path home = scratch_folder() / "home", bundled = home / "models" / "segment-tiny";
  fs::create_directories(bundled);
  fs::copy_file(exact_windows().model, bundled / "model.pth");
  std::ofstream(bundled / "config.json") << "{}";
  const ProgramResult without = run_program({"segment", photo_file(), "--point", "30,20", "--format", "json"}, "",
                                            {{"VITRAIL_HOME", home.string()}});
  ASSERT_EQ(without.status, 0) << without.err;
  EXPECT_EQ(measures_of(json_lines(without.out).at(0)["masks"]), library_masks({.points = {{30, 20, 1}}}));
}

void check_point() {
  expect_prompt({"--point", "30,20", "--point", "5.5,50,0", "--point", "60,1,1"},
                {.points = {{30, 20, 1}, {5.5, 50, 0}, {60, 1, 1}}});
}

void check_box() {
  expect_prompt({"--box", "3,4,50.5,80", "--point", "30,20"},
                {.points = {{30, 20, 1}}, .box = sam::Box{3, 4, 50.5, 80}});
}

void check_mask() {
  const Tensor logits = predictor().predict(predictor().embed(photo()), {.points = {{30, 20, 1}}}).logits.select(0, 1);
  const fs::path file = scratch_folder() / "mask.npy";
  write_npy(file, std::array{logits.size(0), logits.size(1)}, logits.contiguous().data<float>());
  expect_prompt({"--mask", file}, {.mask_logits = logits});
}

void check_single() { expect_prompt({"--point", "30,20", "--single"}, {.points = {{30, 20, 1}}, .multimask = false}); }

void check_prompts() {
  const fs::path file = photo_file().parent_path() / "prompts.jsonl";
  std::ofstream(file) << R"({"image": "photo.png", "points": [[30, 20]]})"
                      << "\n"
                      << R"({"image": "photo.png", "box": [3, 4, 50, 40], "multimask": false})"
                      << "\n";
  const auto lines = json_lines(segment_text({"--prompts", file, "--format", "json"}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(measures_of(lines[0]["masks"]), library_masks({.points = {{30, 20, 1}}}));
  EXPECT_EQ(measures_of(lines[1]["masks"]), library_masks({.box = sam::Box{3, 4, 50, 40}, .multimask = false}));
}

void check_format_of_segment() {
  const std::string text = segment_text({photo_file(), "--point", "30,20"});
  const json want = library_masks({.points = {{30, 20, 1}}});
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 4u) << text;
  EXPECT_EQ(lines[0], photo_file().string());
  for (size_t m = 0; m < 3; ++m) {
    EXPECT_TRUE(contains(lines[m + 1], str(want[m][1].get<int64_t>(), " pixels"))) << lines[m + 1];
  }
  EXPECT_EQ(text, segment_text({photo_file(), "--point", "30,20", "--format", "text"}));
}

void check_logits() {
  const fs::path file = scratch_folder() / "logits.npy";
  segment_text({photo_file(), "--point", "30,20", "--logits", file});
  const Tensor want = predictor().predict(predictor().embed(photo()), {.points = {{30, 20, 1}}}).logits;
  EXPECT_TRUE(close(Tensor::from<float>(want.shape(), read_npy(file).f32), want, 0));
}

void check_embedding() {
  const fs::path file = scratch_folder() / "embedding.npy";
  EXPECT_EQ(segment_text({photo_file(), "--embedding", file}), "");
  const Tensor want = predictor().embed(photo()).values;
  EXPECT_TRUE(close(Tensor::from<float>(want.shape(), read_npy(file).f32), want, 0));
  EXPECT_EQ(content_of(file.parent_path() / "embedding.txt"), photo_file().string() + "\n");
}

// What a run leaves in its folder.
std::set<std::string> written(const Arguments& more) {
  const fs::path folder = scratch_folder() / "out";
  segment_text(Arguments{photo_file(), "--point", "30,20", "-o", folder} + more);
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), folder));
  }
  return names;
}

void check_output() { EXPECT_EQ(written({}), std::set<std::string>{"photo.png"}); }

void check_write() {
  using Names = std::set<std::string>;
  EXPECT_EQ(written({"--write", "masks"}), (Names{"photo/0.png", "photo/1.png", "photo/2.png"}));
  EXPECT_EQ(written({"--write", "csv"}), Names{"photo/metadata.csv"});
  EXPECT_EQ(written({"--write", "coco,sa1b"}), (Names{"coco.json", "photo.json"}));
  EXPECT_EQ(written({"--write", "polygons", "--write", "overlay"}), (Names{"photo.geojson", "photo.png"}));
}

image::Image overlay(const Arguments& more) {
  const fs::path folder = scratch_folder() / "out";
  segment_text(Arguments{photo_file(), "--point", "30,20", "--single", "-o", folder} + more);
  return image::read_image(folder / "photo.png");
}

void check_opacity_of_segment() {
  const sam::ImageEmbedding embedding = predictor().embed(photo());
  const sam::Masks masks = predictor().predict(embedding, {.points = {{30, 20, 1}}, .multimask = false});
  const sam::Rle rle = sam::encode(sam::threshold(predictor().image_logits(masks.logits.select(0, 0), 61, 90)));
  EXPECT_EQ(overlay({}).pixels, sam::mask_overlay(photo(), std::array{rle}, 0.5).pixels) << "the default";
  EXPECT_EQ(overlay({"--opacity", "0.2"}).pixels, sam::mask_overlay(photo(), std::array{rle}, 0.2).pixels);
}

int64_t count_files(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

void check_cache() {
  const fs::path folder = scratch_folder() / "cache";
  masks_of({"--point", "30,20", "--cache", folder});
  EXPECT_EQ(count_files(folder), 1);
  const ProgramResult other = run_program({"segment", "-m", exact_windows().model, photo_file(), "--point", "30,20",
                                           "--cache", folder, "--precision", "int8"});
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(contains(other.err, "expected an embedding of this model (int8-")) << other.err;
}

void check_precompute() {
  const fs::path folder = scratch_folder() / "cache";
  EXPECT_EQ(segment_text({photo_file(), "--cache", folder, "--precompute"}), "");
  EXPECT_EQ(count_files(folder), 1);
}

void check_exif_of_segment() {
  const fs::path turned = fixture("image/decode/exif_6.png");
  for (const bool exif : {false, true}) {
    Arguments arguments{turned, "--format", "json", "--point", "3,2"};
    if (exif) arguments.push_back("--exif");
    const image::Image image = image::read_image(turned, {.apply_exif = exif});
    EXPECT_EQ(measures_of(json::parse(segment_text(arguments))["masks"]),
              library_masks({.points = {{3, 2, 1}}}, image));
  }
}

void check_preset() {
  const sam::Predictor medsam(exact_windows().model, {.preprocessing = models::SamPreprocessing::medsam});
  const sam::Masks masks = medsam.predict(medsam.embed(photo()), {.points = {{30, 20, 1}}});
  const json got = masks_of({"--point", "30,20", "--preset", "medsam"});
  for (size_t m = 0; m < masks.iou.size(); ++m) EXPECT_EQ(got[m].at("iou").get<float>(), masks.iou[m]);
  EXPECT_NE(got, masks_of({"--point", "30,20"}));
}

// Masks of everything: their boxes, areas and points.
json described(const std::vector<sam::AutomaticMask>& masks) {
  json result = json::array();
  for (const sam::AutomaticMask& mask : masks) {
    const sam::PixelBox& box = mask.box;
    result.push_back({{box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0},
                      sam::area(mask.rle),
                      {{mask.point[0], mask.point[1]}},
                      mask.predicted_iou});
  }
  return result;
}

json described(const json& masks) {
  json result = json::array();
  for (const json& mask : masks) {
    result.push_back({mask["bbox"], mask["area"], mask["point_coords"], mask["predicted_iou"].get<float>()});
  }
  return result;
}

// Few points and low thresholds, so that random weights give masks.
AutomaticOptions loose() {
  return {.points_per_side = 3, .pred_iou_thresh = 0, .stability_score_thresh = 0, .box_nms_thresh = 1};
}

json everything(const Arguments& more) {
  Arguments arguments{"--everything"};
  const auto add = [&](const std::string& name, const std::string& value) {
    if (std::ranges::find(more, name) == more.end()) arguments = arguments + Arguments{name, value};
  };
  add("--points-per-side", "3");
  add("--pred-iou-thresh", "0");
  add("--stability-score-thresh", "0");
  add("--box-nms-thresh", "1");
  return described(masks_of(arguments + more));
}

// The option gives the library's masks, and other ones than without it.  `base`: options that it needs.
void check_automatic(const Arguments& option, const std::function<void(AutomaticOptions&)>& set,
                     const Arguments& base = {}, bool differs = true) {
  AutomaticOptions options = loose();
  set(options);
  const json got = everything(option + base);
  EXPECT_EQ(got, described(sam::automatic_masks(predictor(), photo(), options)));
  const bool same = got == everything(base);
  EXPECT_EQ(!same, differs) << option[0];
}

void check_everything() {
  const json masks = masks_of({"--everything", "--points-per-side", "2"});
  EXPECT_EQ(described(masks), described(sam::automatic_masks(predictor(), photo(), {.points_per_side = 2})));
  EXPECT_GT(everything({}).size(), 9u);
}

}  // namespace

OptionEffects segment_option_effects() {
  using Set = std::function<void(AutomaticOptions&)>;
  OptionEffects effects{{"segment", "-m,--model", check_model_of_segment},
                        {"segment", "--point", check_point},
                        {"segment", "--box", check_box},
                        {"segment", "--mask", check_mask},
                        {"segment", "--single", check_single},
                        {"segment", "--prompts", check_prompts},
                        {"segment", "--format", check_format_of_segment},
                        {"segment", "--logits", check_logits},
                        {"segment", "--embedding", check_embedding},
                        {"segment", "-o,--output", check_output},
                        {"segment", "--write", check_write},
                        {"segment", "--opacity", check_opacity_of_segment},
                        {"segment", "--cache", check_cache},
                        {"segment", "--precompute", check_precompute},
                        {"segment", "--exif", check_exif_of_segment},
                        {"segment", "--preset", check_preset},
                        {"segment", "--everything", check_everything}};
  const auto add = [&](const std::string& name, const std::string& value, const Set& set, const Arguments& base = {},
                       bool differs = true) {
    effects.push_back({"segment", name, [=] { check_automatic({name, value}, set, base, differs); }});
  };
  add("--points-per-side", "2", [](AutomaticOptions& o) { o.points_per_side = 2; });
  // Only memory depends on it.
  add(
      "--points-per-batch", "2", [](AutomaticOptions& o) { o.points_per_batch = 2; }, {}, false);
  add("--pred-iou-thresh", "0.5", [](AutomaticOptions& o) { o.pred_iou_thresh = 0.5; });
  add("--stability-score-thresh", "0.8", [](AutomaticOptions& o) { o.stability_score_thresh = 0.8; });
  add("--stability-score-offset", "0.2",
      [](AutomaticOptions& o) { o.stability_score_offset = 0.2, o.stability_score_thresh = 0.8; },
      {"--stability-score-thresh", "0.8"});
  add("--box-nms-thresh", "0.7", [](AutomaticOptions& o) { o.box_nms_thresh = 0.7; });
  add("--crop-n-layers", "1", [](AutomaticOptions& o) { o.crop_n_layers = 1; });
  add("--crop-nms-thresh", "1", [](AutomaticOptions& o) { o.crop_nms_thresh = 1, o.crop_n_layers = 1; },
      {"--crop-n-layers", "1"});
  add("--crop-overlap-ratio", "0.1", [](AutomaticOptions& o) { o.crop_overlap_ratio = 0.1, o.crop_n_layers = 1; },
      {"--crop-n-layers", "1"});
  add("--crop-n-points-downscale-factor", "2",
      [](AutomaticOptions& o) { o.crop_n_points_downscale_factor = 2, o.crop_n_layers = 1; }, {"--crop-n-layers", "1"});
  add("--min-mask-region-area", "40", [](AutomaticOptions& o) { o.min_mask_region_area = 40; });
  add("--min-area", "2000", [](AutomaticOptions& o) { o.min_area = 2000; });
  add("--max-area", "2000", [](AutomaticOptions& o) { o.max_area = 2000; });
  return effects;
}

}  // namespace vitrail::testing
